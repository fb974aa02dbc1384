#include "runtime/gpu/parts_executor.h"

#include <algorithm>

#include "base/error.h"
#include "cpu/opaque/opaque_shapes.h"

namespace redfuser::runtime {
namespace {

size_t index(int64_t id) { return static_cast<size_t>(id); }

const Dims& dims_of(const Tensor& tensor) { return tensor.dims(); }
const Dims& dims_of(const DeviceTensor& tensor) { return tensor.dims; }

// The tensors of these names that there are.
template <typename Named>
Named among(const Named& tensors, const ir::Graph& graph, const std::vector<ir::ValueId>& ids) {
  Named found;
  for (const ir::ValueId id : ids) {
    const auto tensor = tensors.find(graph.values[index(id)].name);
    if (tensor != tensors.end()) found.insert(*tensor);
  }
  return found;
}

Tensor in_host_memory(const DeviceTensor& tensor) {
  return copied(Tensor::wrap(tensor.dtype, tensor.dims, tensor.data, tensor.owner));
}

}  // namespace

PartsExecutor::PartsExecutor(std::shared_ptr<const CompiledProgram> program,
                             const SessionOptions& options)
    : whole_(std::move(program)), parts_(whole_->parts.of(*whole_)) {
  std::vector<std::string> reasons;
  for (const ProgramPart& part : parts_) {
    const auto& executor =
        executors_.emplace_back(std::make_unique<GpuExecutor>(part.program, options));
    const GpuProgram& gpu = executor->program();
    notes.insert(notes.end(), gpu.notes().begin(), gpu.notes().end());
    reasons.insert(reasons.end(), gpu.host().reasons().begin(), gpu.host().reasons().end());
    versions.insert(executor->versions.begin(), executor->versions.end());
  }
  for (std::string& note : host_notes(reasons)) notes.push_back(std::move(note));
  device = first().device;
}

void PartsExecutor::begin_run() {
  kept.clear();
  tunings.clear();
  times.clear();
  peak = 0;
  launches = 0;
  for (size_t k = 0; k < parts_.size(); ++k) {
    executors_[k]->take_settings(*this);
    if (!progress) continue;
    // The parts tell their own steps.
    executors_[k]->progress = [this, &steps = parts_[k].steps](int step, int) {
      const auto number = static_cast<size_t>(step);
      if (number < steps.size()) {
        progress(static_cast<int>(steps[number]), static_cast<int>(whole_->steps.size()));
      }
    };
  }
}

template <typename Named, typename Fetch>
void PartsExecutor::bind_sizes(const ProgramPart& part, const Named& tensors,
                               std::vector<int64_t>& symbols, const Fetch& fetch) {
  if (part.binds.empty()) return;
  const ir::Graph& graph = whole_->graph();
  std::vector<Tensor> values(graph.values.size());
  for (size_t i = 0; i < values.size(); ++i) values[i] = graph.values[i].constant;
  for (const ir::ValueId id : part.sources) {
    const ir::Value& value = graph.values[index(id)];
    const auto& tensor = tensors.at(value.name);
    values[index(id)] = element_count(dims_of(tensor)) <= ir::kMaxElements
                            ? fetch(tensor)
                            : Tensor::wrap(value.dtype, dims_of(tensor), nullptr, nullptr);
  }
  cpu::RunContext context{graph, values, symbols, host_};
  for (const ir::NodeId node : part.binds) {
    cpu::bind_runtime_shape(context, graph.nodes[index(node)]);
  }
}

void PartsExecutor::take_results(size_t part) {
  const Executor& executor = *executors_[part];
  kept.insert(executor.kept.begin(), executor.kept.end());
  peak += executor.peak;
  launches += executor.launches;
  const std::vector<size_t>& steps = parts_[part].steps;
  for (StepTuning tuning : executor.tunings) {
    tuning.step = steps[tuning.step];
    tunings.push_back(std::move(tuning));
  }
  if (executor.times.empty()) return;
  double begin_us = 0;
  for (const StepTime& step : times)
    begin_us = std::max(begin_us, step.start_us + step.duration_us);
  times.resize(whole_->steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    StepTime& step = times[steps[i]] = executor.times[i];
    step.start_us += begin_us;
    for (KernelTime& kernel : step.kernels) kernel.start_us += begin_us;
  }
}

template <typename Named, typename RunPart, typename Fetch>
Named PartsExecutor::run_parts(Named tensors, const RunPart& run_part, const Fetch& fetch) {
  begin_run();
  const int steps = static_cast<int>(whole_->steps.size());
  if (progress) progress(0, steps);
  for (size_t k = 0; k < parts_.size(); ++k) {
    const ir::Graph& graph = parts_[k].program->graph();
    const Named inputs = k == 0 ? tensors : among(tensors, graph, graph.inputs);
    for (auto& [name, tensor] : run_part(k, inputs)) tensors.insert_or_assign(name, tensor);
    take_results(k);
    if (k + 1 == parts_.size()) break;
    std::vector<int64_t> symbols = executors_[k]->symbols();
    bind_sizes(parts_[k], tensors, symbols, fetch);
    executors_[k + 1]->take_outer_symbols(std::move(symbols));
  }
  if (progress) progress(steps, steps);
  return among(tensors, whole_->graph(), whole_->graph().outputs);
}

// Through host memory where the caller looks at the values.
NamedTensors PartsExecutor::run(const NamedTensors& inputs) {
  if (keeps_any() || on_value) {
    return run_parts(
        inputs, [&](size_t part, const NamedTensors& own) { return executors_[part]->run(own); },
        [](const Tensor& tensor) { return tensor; });
  }
  NamedDeviceTensors given;
  for (const auto& [name, tensor] : inputs) {
    if (!tensor.defined()) continue;
    given[name] = {tensor.dtype(), tensor.dims(), const_cast<void*>(tensor.data()), true};
  }
  return to_host(enqueue(given, {}, nullptr));
}

NamedDeviceTensors PartsExecutor::enqueue(const NamedDeviceTensors& inputs,
                                          const NamedDeviceTensors& outputs, void* stream) {
  void* const own = first().stream();
  void* const handle = stream != nullptr ? stream : own;
  NamedDeviceTensors left = outputs;
  const auto run_part = [&](size_t part, const NamedDeviceTensors& tensors) {
    const ir::Graph& graph = parts_[part].program->graph();
    NamedDeviceTensors targets =
        part + 1 == parts_.size() ? left : among(left, graph, graph.outputs);
    for (const auto& [name, tensor] : targets) left.erase(name);
    return executors_[part]->enqueue(tensors, targets, handle);
  };
  return run_parts(inputs, run_part, [&](const DeviceTensor& tensor) {
    if (tensor.on_host) return in_host_memory(tensor);
    if (handle != own) order(handle, own);
    return first().to_host({{"", tensor}}).at("");
  });
}

DeviceTiming PartsExecutor::time_on_device(const NamedTensors& /*inputs*/, double /*budget_s*/) {
  user_error(
      "sizes that depend on data are read between kernels: the run has no time on the device");
}

NamedDeviceTensors PartsExecutor::to_device(const NamedTensors& tensors) {
  return first().to_device(tensors);
}

NamedTensors PartsExecutor::to_host(const NamedDeviceTensors& tensors) {
  NamedTensors result;
  NamedDeviceTensors on_device;
  for (const auto& [name, tensor] : tensors) {
    if (tensor.on_host) {
      result[name] = in_host_memory(tensor);
    } else {
      on_device.emplace(name, tensor);
    }
  }
  result.merge(first().to_host(on_device));
  return result;
}

DeviceTensor PartsExecutor::allocate(DType dtype, const Dims& dims) {
  return first().allocate(dtype, dims);
}

void PartsExecutor::copy_positions(const DeviceTensor& from, int64_t axis, int64_t begin,
                                   const DeviceTensor& to) {
  first().copy_positions(from, axis, begin, to);
}

std::optional<RunTiming> PartsExecutor::run_timing() const {
  RunTiming sum;
  for (const auto& executor : executors_) {
    const std::optional<RunTiming> part = executor->run_timing();
    if (!part) return std::nullopt;
    sum.host_to_device_us += part->host_to_device_us;
    sum.compute_us += part->compute_us;
    sum.device_to_host_us += part->device_to_host_us;
    sum.enqueue_us += part->enqueue_us;
  }
  return sum;
}

std::vector<StepFacts> PartsExecutor::step_facts() const {
  std::vector<StepFacts> facts(whole_->steps.size());
  for (size_t k = 0; k < parts_.size(); ++k) {
    std::vector<StepFacts> own = executors_[k]->step_facts();
    for (size_t i = 0; i < own.size(); ++i) facts[parts_[k].steps[i]] = std::move(own[i]);
  }
  return facts;
}

}  // namespace redfuser::runtime
