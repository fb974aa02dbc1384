#include "base/error.h"
#include "cuda/driver.h"
#include "onnx/import/import.h"
#include "runtime/cpu/evaluating_executor.h"
#include "runtime/program/bind_inputs.h"
#include "runtime/session/make_executor.h"

namespace redfuser {

struct Session::Impl {
  Impl(std::shared_ptr<const runtime::CompiledProgram> compiled, const SessionOptions& wanted)
      : base(std::move(compiled)),
        program(base),
        options(wanted),
        executor(make_executor(program, options)) {}
  // Makes `program` and `executor` those of runs on inputs of these names.
  template <typename Named>
  void take(const std::map<std::string, Named>& inputs);
  void take_set(std::vector<std::string> names);
  // run(executor), once more by an evaluating one where the plan turns out not to serve the inputs.
  template <typename Run>
  NamedTensors evaluate_if_needed(const Run& run);
  const std::shared_ptr<const runtime::CompiledProgram> base;
  std::shared_ptr<const runtime::CompiledProgram> program;  // base, or one of those overriding it
  SessionOptions options;
  std::unique_ptr<runtime::Executor> executor;
  std::vector<std::string> overridden;  // the initializers that `program` takes as inputs
  std::map<std::vector<std::string>, std::unique_ptr<runtime::Executor>> others;
};

Session::Session(const Program& program, const SessionOptions& options) {
  RF_CHECK(program.handle() != nullptr, "Session: the program is empty");
  impl_ = std::make_unique<Impl>(program.handle(), options);
}

Session::~Session() = default;
Session::Session(Session&&) noexcept = default;

template <typename Named>
void Session::Impl::take(const std::map<std::string, Named>& inputs) {
  std::vector<std::string> names = base->overriding->overridden(inputs);
  if (names != overridden) take_set(std::move(names));
}

void Session::Impl::take_set(std::vector<std::string> names) {
  auto wanted = names.empty() ? base : base->overriding->of(names).handle();
  std::unique_ptr<runtime::Executor>& kept = others[names];
  if (kept == nullptr) kept = make_executor(wanted, options);
  // Each has a stream of its own.
  executor->synchronize();
  kept->take_settings(*executor);
  std::swap(executor, kept);
  std::swap(others[std::move(overridden)], kept);
  overridden = std::move(names);
  program = std::move(wanted);
}

// Dependence on run-time values may also show during a run (sizes that an operator reads from a
// tensor which no step writes): this run and later ones are evaluated node by node.
template <typename Run>
NamedTensors Session::Impl::evaluate_if_needed(const Run& run) {
  try {
    return run(*executor);
  } catch (const NeedsValues& reason) {
    if (executor->device != "cpu" && options.device != "auto") throw;
    auto evaluating = make_evaluating_executor(program, options);
    evaluating->take_settings(*executor);
    executor = std::move(evaluating);
    return run(*executor);
  }
}

NamedTensors Session::run(const NamedTensors& inputs) {
  impl_->take(inputs);
  return impl_->evaluate_if_needed(
      [&](runtime::Executor& executor) { return executor.run(inputs); });
}

NamedTensors Session::run(const NamedTensors& inputs, const NamedTensors& outputs) {
  impl_->take(inputs);
  return impl_->evaluate_if_needed(
      [&](runtime::Executor& executor) { return executor.run_into(inputs, outputs); });
}

NamedDeviceTensors Session::enqueue(const NamedDeviceTensors& inputs,
                                    const NamedDeviceTensors& outputs, void* stream) {
  impl_->take(inputs);
  return impl_->executor->enqueue(inputs, outputs, stream);
}

NamedDims Session::output_dims(const NamedDims& inputs) const {
  const std::vector<std::string> names = impl_->base->overriding->overridden(inputs);
  const auto program = names.empty() ? impl_->base : impl_->base->overriding->of(names).handle();
  if (const std::string& reason = program->model->needs_values; !reason.empty()) {
    user_error("the sizes of the outputs follow from a run only: {}", reason);
  }
  return runtime::output_dims(*program, inputs);
}

int64_t Session::allocations() const { return cuda::allocations(); }

void Session::prepare(const NamedDeviceTensors& inputs, const NamedDeviceTensors& outputs) {
  impl_->take(inputs);
  impl_->executor->prepare(inputs, outputs);
}

NamedDeviceTensors Session::to_device(const NamedTensors& tensors) {
  return impl_->executor->to_device(tensors);
}

NamedTensors Session::to_host(const NamedDeviceTensors& tensors) {
  return impl_->executor->to_host(tensors);
}

DeviceTensor Session::allocate(DType dtype, const Dims& dims) {
  return impl_->executor->allocate(dtype, dims);
}

void Session::copy_positions(const DeviceTensor& from, int64_t axis, int64_t begin,
                             const DeviceTensor& to) {
  impl_->executor->copy_positions(from, axis, begin, to);
}

bool Session::appends(const std::string& past, const std::string& present) const {
  return impl_->executor->appends(past, present);
}

void* Session::stream() const { return impl_->executor->stream(); }

void Session::order(void* before, void* after) { impl_->executor->order(before, after); }

void Session::synchronize() { impl_->executor->synchronize(); }

void Session::time_runs(bool on) { impl_->executor->timing = on; }

std::optional<RunTiming> Session::run_timing() const { return impl_->executor->run_timing(); }

std::optional<DeviceState> Session::device_state() const { return impl_->executor->device_state(); }

void Session::profile(bool on) { impl_->executor->profiling = on; }

const std::vector<StepTime>& Session::step_times() const { return impl_->executor->times; }

void Session::on_progress(std::function<void(int, int)> callback) {
  impl_->executor->progress = std::move(callback);
}

int64_t Session::peak_bytes() const { return impl_->executor->peak; }

const SessionOptions& Session::options() const { return impl_->options; }
const std::string& Session::device() const { return impl_->executor->device; }

const std::map<std::string, std::string>& Session::versions() const {
  return impl_->executor->versions;
}

const std::vector<StepTuning>& Session::tunings() const { return impl_->executor->tunings; }

std::vector<StepFacts> Session::step_facts() const { return impl_->executor->step_facts(); }

const std::vector<std::string>& Session::notes() const { return impl_->executor->notes; }

int Session::launches() const { return impl_->executor->launches; }

DeviceTiming Session::time_on_device(const NamedTensors& inputs, double budget_s) {
  impl_->take(inputs);
  return impl_->executor->time_on_device(inputs, budget_s);
}

void Session::keep_values(bool on) {
  impl_->executor->keep_all = on;
  impl_->executor->keep_names.clear();
}

void Session::keep_values(const std::vector<std::string>& names) {
  impl_->executor->keep_all = false;
  impl_->executor->keep_names = {names.begin(), names.end()};
}

const NamedTensors& Session::kept_values() const { return impl_->executor->kept; }

}  // namespace redfuser
