// A run of States::Impl.
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "io/did_you_mean.h"
#include "redfuser/dlpack.h"
#include "runtime/state/state_sizes.h"
#include "runtime/state/states_impl.h"

namespace redfuser {
namespace {

NamedDims dims_of(const NamedDeviceTensors& tensors) {
  NamedDims dims;
  for (const auto& [name, tensor] : tensors) dims[name] = tensor.dims;
  return dims;
}

DeviceTensor empty_value(Session& session, const ValueInfo& declared, const Dims& dims) {
  Tensor zeros(declared.dtype, dims);
  if (zeros.bytes() > 0) std::memset(zeros.mutable_data(), 0, zeros.bytes());
  if (session.stream() == nullptr || zeros.bytes() == 0) return dlpack::on_host(zeros);
  return session.to_device({{declared.name, zeros}}).at(declared.name);
}

}  // namespace

const runtime::StateValue& States::Impl::find(const std::string& name) const {
  std::vector<std::string> names;
  for (const runtime::StateValue& state : values) {
    if (state.pair().past == name || state.pair().present == name) return state;
    names.push_back(state.pair().past);
  }
  user_error("\"{}\" is not a state{}", name, io::did_you_mean(name, names));
}

void States::Impl::check_idle(const std::string& name) const {
  if (running) user_error("state \"{}\" is in use by a run that has not ended", name);
}

NamedDeviceTensors States::Impl::with_pasts(const NamedDeviceTensors& inputs) const {
  runtime::StateSizes sizes(model, dims_of(inputs));
  NamedDeviceTensors all = inputs;
  for (const runtime::StateValue& state : values) {
    const std::string& name = state.pair().past;
    if (inputs.count(name)) user_error("state \"{}\" is not an input of States::run", name);
    if (state.written()) {
      sizes.check(state);
      all[name] = state.value();
      // The state keeps its memory through the run, and takes it for its own alone.
      all[name].owner = nullptr;
    } else {
      all[name] = empty_value(*session, state.declared(), sizes.empty_dims(state));
    }
  }
  return all;
}

void States::Impl::check_growth(const NamedDims& inputs, const NamedDims& outputs) const {
  for (const runtime::StateValue& state : values) {
    const auto found = outputs.find(state.pair().present);
    if (found == outputs.end()) continue;
    const Dims &before = inputs.at(state.pair().past), &after = found->second;
    if (!state.pair().axis && after != before) {
      user_error("state \"{}\" is full: its sizes are {}, but this run makes them {}",
                 state.pair().past, fmt::join(before, ","), fmt::join(after, ","));
    }
    if (capacity <= 0 || !state.pair().axis) continue;
    const int64_t positions = after[static_cast<size_t>(*state.pair().axis)];
    if (positions <= capacity) continue;
    user_error("state \"{}\" holds {} positions of its capacity of {}; this run makes them {}",
               state.pair().past, state.length(), capacity, positions);
  }
}

// Empty where the sizes follow from data alone: they are known after the run.
NamedDims States::Impl::output_dims(const NamedDims& inputs) const {
  try {
    return session->output_dims(inputs);
  } catch (const UserError&) {
    return {};
  }
}

bool States::Impl::may_append() const {
  constexpr int kAttempts = 2;
  const bool empty = std::any_of(values.begin(), values.end(), [](const auto& state) {
    return state.pair().axis ? state.length() == 0 : !state.written();
  });
  return !empty && refused < kAttempts;
}

NamedDeviceTensors States::Impl::append(const NamedDeviceTensors& inputs, const NamedDims& known) {
  NamedDeviceTensors all = inputs, given;
  for (runtime::StateValue& state : values) {
    const StatePair& pair = state.pair();
    const Dims& dims = known.at(pair.present);
    if (!pair.axis) {
      given[pair.present] = {state.declared().dtype, dims, nullptr, true, nullptr, dims};
      continue;
    }
    given[pair.present] = state.appended(*session, dims);
    all[pair.past] = state.value();
  }
  return session->enqueue(all, given);
}

NamedDeviceTensors States::Impl::run_on_cpu(const NamedDeviceTensors& inputs) {
  for (const auto& [name, tensor] : inputs) {
    if (!tensor.on_host) user_error("input \"{}\" is on a GPU, but the session is not", name);
  }
  const NamedDims known = output_dims(dims_of(inputs));
  check_growth(dims_of(inputs), known);
  NamedDeviceTensors outputs;
  if (!known.empty() && may_append()) {
    outputs = append(inputs, known);
    refused = outputs.empty() ? refused + 1 : 0;
  }
  if (!outputs.empty()) return outputs;
  NamedTensors tensors;
  for (const auto& [name, tensor] : inputs) tensors[name] = dlpack::to_tensor(tensor);
  for (const runtime::StateValue& state : values) {
    if (state.written()) tensors[state.pair().past] = dlpack::to_tensor(state.dense(*session));
  }
  for (const auto& [name, tensor] : session->run(tensors)) outputs[name] = dlpack::on_host(tensor);
  if (known.empty()) check_growth(dims_of(inputs), dims_of(outputs));
  return outputs;
}

States::Impl::Run States::Impl::run_with_states(const NamedDeviceTensors& inputs) {
  Run run{with_pasts(inputs), {}};
  const NamedDims dims = dims_of(run.inputs), known = session->output_dims(dims);
  check_growth(dims, known);
  for (runtime::StateValue& state : values) {
    const auto& [past, present, axis] = state.pair();
    const Dims& wanted = known.at(present);
    if (!axis || !session->appends(past, present)) {
      run.given[present] = state.target(*session, wanted);
      continue;
    }
    run.given[present] = state.appended(*session, wanted);
    if (state.written()) run.inputs[past] = state.value();
    run.inputs[past].owner = nullptr;
  }
  return run;
}

void States::Impl::note(const NamedDeviceTensors& inputs) {
  before = std::move(last);
  last = inputs;
  for (auto& [name, tensor] : last) {
    if (tensor.on_host) tensor.data = nullptr;
    tensor.owner = nullptr;
  }
}

NamedDeviceTensors States::Impl::expected() const {
  const bool same_names = std::equal(
      last.begin(), last.end(), before.begin(), before.end(), [](const auto& a, const auto& b) {
        return a.first == b.first && a.second.dims.size() == b.second.dims.size();
      });
  if (!same_names) return {};
  NamedDeviceTensors inputs = last;
  for (auto& [name, tensor] : inputs) {
    const Dims& earlier = before.at(name).dims;
    for (size_t i = 0; i < earlier.size(); ++i) {
      tensor.dims[i] += tensor.dims[i] - earlier[i];
      if (tensor.dims[i] < 0) return {};
    }
  }
  return inputs;
}

std::optional<States::Impl::Run> States::Impl::take_prepared(const NamedDeviceTensors& inputs) {
  std::optional<Run> run = std::exchange(next, std::nullopt);
  if (!run) return std::nullopt;
  for (const runtime::StateValue& state : values) {
    constexpr int kOwn = 2;  // the state's and the prepared run's
    if (run->given.at(state.pair().present).owner.use_count() > kOwn) return std::nullopt;
  }
  for (const auto& [name, tensor] : inputs) {
    const auto found = run->inputs.find(name);
    if (found == run->inputs.end() || found->second.dims != tensor.dims) return std::nullopt;
    found->second = tensor;
  }
  if (inputs.size() + values.size() != run->inputs.size()) return std::nullopt;
  return run;
}

NamedDeviceTensors States::Impl::run(const NamedDeviceTensors& inputs) {
  check_idle(values[0].pair().past);
  struct Running {
    bool& flag;
    explicit Running(bool& target) : flag(target) { flag = true; }
    ~Running() { flag = false; }
  } const marker(running);
  NamedDeviceTensors outputs;
  if (on_gpu()) {
    std::optional<Run> run = take_prepared(inputs);
    if (!run) run = run_with_states(inputs);
    outputs = session->enqueue(run->inputs, run->given);
    note(inputs);
  } else {
    outputs = run_on_cpu(with_pasts(inputs));
  }
  for (runtime::StateValue& state : values) {
    state.replace(outputs.at(state.pair().present));
    outputs.erase(state.pair().present);
  }
  return outputs;
}

// What is wrong with a run that is expected shows if it comes.
void States::prepare() {
  impl_->check_idle(impl_->values[0].pair().past);
  impl_->next.reset();
  if (!impl_->on_gpu()) return;
  const NamedDeviceTensors inputs = impl_->expected();
  if (inputs.empty()) return;
  try {
    impl_->next = impl_->run_with_states(inputs);
    impl_->session->prepare(impl_->next->inputs, impl_->next->given);
  } catch (const UserError&) {
    impl_->next.reset();
  }
}

}  // namespace redfuser
