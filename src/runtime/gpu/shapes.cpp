// The shapes of a GpuExecutor: memory, tuned forms and calls of a run's sizes.
#include <algorithm>

#include "base/error.h"
#include "runtime/gpu/executor.h"
#include "runtime/load/fallback.h"

namespace redfuser::runtime {

void GpuExecutor::reserve(int64_t arena_bytes) {
  const int64_t fixed = program_->constant_bytes() + workspace_.bytes();
  if (memory_limit_ > 0 && arena_bytes > memory_limit_ - fixed) {
    user_error(
        "a run of these shapes needs {} bytes of GPU memory besides {} for weights and "
        "workspace, above the limit of {}",
        arena_bytes, fixed, memory_limit_);
  }
  if (arena_bytes > arena_.bytes()) {
    shapes_.clear();  // their calls point into the old arena
    arena_ = cuda::Buffer();
    arena_ = cuda::Buffer(program_->device(), arena_bytes, "the arena of tensors");
  }
  peak = fixed + arena_.bytes();
}

BoundProgram& GpuExecutor::shape_for(const Addresses& addresses, const InputCopy& copy_inputs) {
  Key key{symbols_, {}, keeps_any(), {}};
  for (const auto& [value, address] : addresses) key.elsewhere.push_back(value);
  growing_.note(symbols_, appended_);
  if (BoundProgram* shape = known_shape(key, addresses)) return *shape;
  if (BoundProgram* shape = growing_shape(key, addresses, copy_inputs)) return *shape;
  return add_shape(std::move(key), tuner_ ? tune(copy_inputs) : TunedSteps{steps_, {}}, addresses);
}

BoundProgram* GpuExecutor::growing_shape(Key key, const Addresses& addresses,
                                         const InputCopy& copy_inputs) {
  const auto most = growing_.greatest(symbols_);
  if (!most || key.keep_all || host_run_) return nullptr;
  key.symbols = *most;
  key.grows = growing_.grows();
  const bool kept = std::any_of(shapes_.begin(), shapes_.end(),
                                [&](const auto& entry) { return entry.first == key; });
  if (!kept && !growing_.steady()) return nullptr;
  TunedSteps forms = tuner_ ? tune(copy_inputs) : TunedSteps{steps_, {}};
  BoundProgram* known = known_shape(key, addresses);
  if (known != nullptr && (!tuner_ || known->loaded() == forms.steps)) return known;
  try {
    return &add_shape(std::move(key), std::move(forms), addresses);
  } catch (const UserError&) {
    return nullptr;  // this run may have room where the greatest one has not
  }
}

BoundProgram* GpuExecutor::known_shape(const Key& key, const Addresses& addresses) {
  const auto found = std::find_if(shapes_.begin(), shapes_.end(),
                                  [&](const auto& entry) { return entry.first == key; });
  if (found == shapes_.end()) return nullptr;
  shapes_.splice(shapes_.begin(), shapes_, found);
  if (found->second.rebind(symbols_, addresses)) return &found->second;
  shapes_.erase(found);
  return nullptr;
}

BoundProgram& GpuExecutor::add_shape(Key key, TunedSteps forms, const Addresses& addresses) {
  MemoryPlan layout(*program_, forms.steps, key.symbols, key.keep_all,
                    {key.elsewhere.begin(), key.elsewhere.end()});
  reserve(layout.bytes());
  std::erase_if(shapes_, [&](const auto& entry) { return entry.first == key; });
  while (shapes_.size() >= kept_shapes_) shapes_.pop_back();
  shapes_.emplace_front(std::move(key),
                        BoundProgram(*program_, std::move(forms.steps), std::move(layout), symbols_,
                                     arena_.address(), counter_.address(), addresses));
  shapes_.front().second.tunings = std::move(forms.tunings);
  return shapes_.front().second;
}

void GpuExecutor::foresee(Addresses addresses) {
  auto& [key, shape] = shapes_.front();
  const auto same_value = [](const auto& a, const auto& b) { return a.first == b.first; };
  const bool same_values = std::equal(addresses.begin(), addresses.end(), last_addresses_.begin(),
                                      last_addresses_.end(), same_value);
  if (!key.grows.empty() && same_values && last_symbols_.size() == symbols_.size()) {
    std::vector<int64_t> next = symbols_;
    for (size_t i = 0; i < next.size(); ++i) next[i] += symbols_[i] - last_symbols_[i];
    if (*std::min_element(next.begin(), next.end()) >= 0) shape.foresee(next, last_addresses_);
  }
  last_symbols_ = symbols_;
  last_addresses_ = std::move(addresses);
}

// Tunes on the session's own memory and stream: a candidate runs many times, so outputs must not
// overwrite inputs.
TunedSteps GpuExecutor::tune(const InputCopy& copy_inputs) {
  const std::vector<TuningTask> tasks = tuning_tasks(*program_, steps_, symbols_);
  if (!tuner_->knows(tasks)) {
    MemoryPlan layout(*program_, steps_, symbols_, false);
    reserve(layout.bytes());
    const BoundProgram shape(*program_, steps_, std::move(layout), symbols_, arena_.address(),
                             counter_.address());
    copy_inputs(shape);
    const int64_t room = memory_limit_ > 0 ? memory_limit_ - peak : INT64_MAX;
    try {
      tuner_->measure(tasks, shape, stream_, workspace_.address(), room);
    } catch (const StepFailure& failure) {
      replace_default(failure);
      return tune(copy_inputs);
    }
  }
  TunedSteps forms = tuner_->tuned(tasks, steps_);
  for (std::string& note : tuner_->take_notes()) notes.push_back(std::move(note));
  return forms;
}

}  // namespace redfuser::runtime
