#include "runtime/session/values_executor.h"

#include <algorithm>
#include <list>

#include "base/error.h"
#include "onnx/import/import.h"
#include "runtime/gpu/make_cuda_executor.h"
#include "runtime/session/make_executor.h"

namespace redfuser::runtime {
namespace {

bool same(const NamedTensors& a, const NamedTensors& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    const Tensor &left = x.second, &right = y.second;
    return x.first == y.first && left.dtype() == right.dtype() && left.dims() == right.dims() &&
           std::equal(left.as<char>(), left.as<char>() + left.bytes(), right.as<char>());
  });
}

class ValuesExecutor : public Executor {
 public:
  ValuesExecutor(std::shared_ptr<const CompiledProgram> program, const SessionOptions& options)
      : program_(std::move(program)),
        options_(options),
        names_(onnx::deciding_inputs(*program_->model)) {
    device = options.device;
    if (program_->model->run_time_structure().empty()) make_base();
  }

 private:
  void make_base() {
    base_ = make_cuda_executor(program_, options_);
    take_results(*base_);
    notes.insert(notes.end(), base_->notes.begin(), base_->notes.end());
  }

  static constexpr size_t kMostRuns = 8;

  struct Run {
    NamedTensors values;
    std::unique_ptr<Executor> executor;
  };

  // The executor of the values among `inputs`, and the other inputs.
  template <typename Body>
  auto on_values(const NamedTensors& inputs, const Body& body) {
    NamedTensors values, rest = inputs;
    for (const std::string& name : onnx::short_inputs(names_, inputs)) {
      values.insert(rest.extract(name));
    }
    if (base_ == nullptr && runs_.size() == kMostRuns && known_run(values) == runs_.end() &&
        program_->model->needs_values.empty()) {
      make_base();
    }
    Executor* own = base_ == nullptr ? run_for(values).executor.get() : own_run(values);
    Executor& executor = own != nullptr ? *own : *base_;
    executor.take_settings(*this);
    auto result = body(executor, own != nullptr ? rest : inputs);
    take_results(executor);
    return result;
  }

  // Null where the plan for all values runs. A program of its own takes memory, for its weights
  // too.
  Executor* own_run(const NamedTensors& values) {
    if (gave_up_ || values.empty() || is_watched() || !come_again(values)) return nullptr;
    try {
      return run_for(values).executor.get();
    } catch (const UserError&) {
      gave_up_ = true;
      return nullptr;
    }
  }

  bool is_watched() const { return profiling || keeps_any() || on_value || options_.tune; }

  // Whether there is a program for the values, or the last run had them too.
  bool come_again(const NamedTensors& values) {
    const bool again = known_run(values) != runs_.end() || same(last_, values);
    last_.clear();
    for (const auto& [name, tensor] : values) last_[name] = copied(tensor);
    return again;
  }

  std::list<Run>::iterator known_run(const NamedTensors& values) {
    return std::find_if(runs_.begin(), runs_.end(),
                        [&](const Run& run) { return same(run.values, values); });
  }

 public:
  NamedTensors run(const NamedTensors& inputs) override {
    return on_values(
        inputs, [](Executor& executor, const NamedTensors& rest) { return executor.run(rest); });
  }
  NamedTensors run_into(const NamedTensors& inputs, const NamedTensors& outputs) override {
    return on_values(inputs, [&](Executor& executor, const NamedTensors& rest) {
      return executor.run_into(rest, outputs);
    });
  }
  DeviceTiming time_on_device(const NamedTensors& inputs, double budget_s) override {
    return on_values(inputs, [&](Executor& executor, const NamedTensors& rest) {
      return executor.time_on_device(rest, budget_s);
    });
  }

  NamedDeviceTensors enqueue(const NamedDeviceTensors& inputs, const NamedDeviceTensors& outputs,
                             void* stream) override {
    return base().enqueue(inputs, outputs, stream);
  }
  void prepare(const NamedDeviceTensors& inputs, const NamedDeviceTensors& outputs) override {
    base().prepare(inputs, outputs);
  }
  NamedDeviceTensors to_device(const NamedTensors& tensors) override {
    return base().to_device(tensors);
  }
  NamedTensors to_host(const NamedDeviceTensors& tensors) override {
    return base().to_host(tensors);
  }
  DeviceTensor allocate(DType dtype, const Dims& dims) override {
    return base().allocate(dtype, dims);
  }
  void copy_positions(const DeviceTensor& from, int64_t axis, int64_t begin,
                      const DeviceTensor& to) override {
    base().copy_positions(from, axis, begin, to);
  }
  bool appends(const std::string& past, const std::string& present) const override {
    return base_ != nullptr && base_->appends(past, present);
  }
  void* stream() const override { return base_ == nullptr ? nullptr : base_->stream(); }
  void order(void* before, void* after) override { base().order(before, after); }
  void synchronize() override {
    if (base_ != nullptr) base_->synchronize();
  }
  std::optional<RunTiming> run_timing() const override {
    return latest_ == nullptr ? std::nullopt : latest_->run_timing();
  }
  std::optional<DeviceState> device_state() const override {
    return latest_ == nullptr ? std::nullopt : latest_->device_state();
  }
  std::vector<StepFacts> step_facts() const override {
    return base_ == nullptr ? std::vector<StepFacts>() : base_->step_facts();
  }

 private:
  Executor& base() {
    if (base_ == nullptr && program_->model->needs_values.empty()) make_base();
    if (base_ != nullptr) return *base_;
    user_error(
        "values of inputs decide what the model computes: it takes no tensors in a GPU's memory");
  }

  // The run of these values, in front.
  Run& run_for(const NamedTensors& values) {
    const auto known = known_run(values);
    if (known != runs_.end()) {
      runs_.splice(runs_.begin(), runs_, known);
      return runs_.front();
    }
    if (runs_.size() == kMostRuns) {
      if (latest_ == runs_.back().executor.get()) latest_ = nullptr;
      runs_.pop_back();
    }
    NamedTensors own;
    for (const auto& [name, tensor] : values) own[name] = copied(tensor);
    const Program program =
        compile(Model(onnx::with_values(*program_->model, own)), program_->options);
    const std::string& needs = program.handle()->model->needs_values;
    if (!needs.empty()) user_error("no plan for a GPU: {}", needs);
    std::unique_ptr<Executor> executor = make_executor(program.handle(), options_);
    notes.insert(notes.end(), executor->notes.begin(), executor->notes.end());
    runs_.push_front({std::move(own), std::move(executor)});
    return runs_.front();
  }

  void take_results(const Executor& executor) {
    latest_ = &executor;
    times = executor.times;
    tunings = executor.tunings;
    kept = executor.kept;
    peak = executor.peak;
    launches = executor.launches;
    device = executor.device;
    versions = executor.versions;
  }

  const std::shared_ptr<const CompiledProgram> program_;
  const SessionOptions options_;
  const std::vector<std::string> names_;  // of the inputs that may decide
  std::unique_ptr<Executor> base_;        // by the plan for all values, if there is one
  std::list<Run> runs_;                   // the last one first
  NamedTensors last_;                     // the values of the last run
  const Executor* latest_ = nullptr;      // that has run
  bool gave_up_ = false;                  // to make programs, where base_ runs
};

}  // namespace

std::unique_ptr<Executor> make_values_executor(std::shared_ptr<const CompiledProgram> program,
                                               const SessionOptions& options) {
  return std::make_unique<ValuesExecutor>(std::move(program), options);
}

}  // namespace redfuser::runtime
