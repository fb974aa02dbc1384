#include "runtime/cuda_executor.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "cuda/nvrtc.h"
#include "runtime/bind_inputs.h"
#include "runtime/size_checks.h"

namespace redfuser {
namespace {

size_t index(ValueId id) { return static_cast<size_t>(id); }

bool has_products(const CudaProgram& program) {
  for (const DeviceStep& step : program.steps()) {
    for (const DeviceCall& call : step.calls) {
      if (std::holds_alternative<ProductCall>(call)) return true;
    }
  }
  return false;
}

}  // namespace

CudaExecutor::CudaExecutor(std::shared_ptr<const CompiledProgram> program,
                           const SessionOptions& options)
    : compiled_(std::move(program)),
      program_(cuda_program(compiled_, options)),
      graph_(compiled_->graph()),
      memory_limit_(options.memory_limit),
      stream_((program_->device()->make_current(), program_->device())),
      values_(graph_.values.size()) {
  device = program_->device()->info().name;
  notes = program_->notes();
  const int driver = program_->device()->info().driver_version;
  versions = {{"driver", fmt::format("{}.{}", driver / 1000, driver % 1000 / 10)},
              {"nvrtc", cuda::nvrtc_version()},
              {"cublaslt", cuda::ProductLibrary::version()}};
  if (has_products(*program_)) {
    workspace_ = cuda::Buffer(program_->device(), cuda::ProductLibrary::kWorkspaceBytes,
                              "the workspace of products");
  }
}

CudaExecutor::~CudaExecutor() {
  try {
    program_->device()->make_current();
    stream_.synchronize();
  } catch (const std::exception&) {
    // The failure was thrown by the run that met it.
  }
}

void CudaExecutor::reserve(int64_t arena_bytes) {
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

CudaShape& CudaExecutor::shape_for(bool keep_all_values) {
  std::vector<int64_t> key = symbols_;
  key.push_back(keep_all_values ? 1 : 0);
  const auto found = std::find_if(shapes_.begin(), shapes_.end(),
                                  [&](const auto& entry) { return entry.first == key; });
  if (found != shapes_.end()) {
    shapes_.splice(shapes_.begin(), shapes_, found);
    return shapes_.front().second;
  }
  CudaLayout layout(*program_, symbols_, keep_all_values);
  reserve(layout.bytes());
  while (shapes_.size() >= kMostShapes) shapes_.pop_back();
  shapes_.emplace_front(std::move(key),
                        CudaShape(*program_, std::move(layout), symbols_, arena_.address()));
  return shapes_.front().second;
}

CudaShape& CudaExecutor::bind(const NamedTensors& inputs) {
  program_->device()->make_current();
  bind_inputs(*compiled_, inputs, values_, symbols_);
  SizeChecks(graph_).run(symbols_);
  CudaShape& shape = shape_for(keeps_any());
  launches = shape.launches();
  return shape;
}

void CudaExecutor::upload(const CudaShape& shape) {
  for (const ValueId id : graph_.inputs) {
    const Tensor& tensor = values_[index(id)];
    stream_.to_device(shape.address(id), tensor.data(), static_cast<int64_t>(tensor.bytes()));
  }
}

void CudaExecutor::enqueue_all(const CudaShape& shape) {
  for (size_t i = 0; i < shape.steps(); ++i) shape.enqueue(i, stream_, workspace_.address());
}

void CudaExecutor::record(CudaShape& shape) {
  stream_.begin_capture();
  try {
    enqueue_all(shape);
  } catch (...) {
    stream_.abandon_capture();
    throw;
  }
  shape.graph = stream_.end_capture();
}

// Step by step, for what needs to see every step.
void CudaExecutor::run_steps(const CudaShape& shape) {
  const size_t count = shape.steps();
  std::vector<cuda::Event> events;
  for (size_t i = 0; profiling && i <= count; ++i) events.emplace_back(program_->device());
  if (profiling) events[0].record(stream_);
  for (size_t i = 0; i < count; ++i) {
    shape.enqueue(i, stream_, workspace_.address());
    if (profiling) events[i + 1].record(stream_);
    if (!keeps_any()) continue;
    for (const ValueId id : compiled_->plan.steps[i].writes) {
      const std::string& name = graph_.values[index(id)].name;
      if (keeps(name)) kept[name] = fetch(shape, id);
    }
  }
  stream_.synchronize();
  for (size_t i = 0; profiling && i < count; ++i) {
    const StepInfo& info = compiled_->steps[i];
    times.push_back({info.label, info.kind, events[i].microseconds_since(events[0]),
                     events[i + 1].microseconds_since(events[i])});
  }
}

Tensor CudaExecutor::fetch(const CudaShape& shape, ValueId value) {
  Tensor tensor(graph_.values[index(value)].dtype, shape.layout().dims(value));
  stream_.to_host(tensor.mutable_data(), shape.address(value),
                  static_cast<int64_t>(tensor.bytes()));
  return tensor;
}

NamedTensors CudaExecutor::outputs(const CudaShape& shape) {
  NamedTensors result;
  for (const ValueId id : graph_.outputs) {
    const Value& value = graph_.values[index(id)];
    result[value.name] = value.is_constant() ? value.constant : fetch(shape, id);
  }
  stream_.synchronize();
  return result;
}

NamedTensors CudaExecutor::run(const NamedTensors& inputs) {
  times.clear();
  kept.clear();
  CudaShape& shape = bind(inputs);
  const int steps = static_cast<int>(shape.steps());
  if (progress) progress(0, steps);
  upload(shape);
  if (profiling || keeps_any()) {
    run_steps(shape);
  } else {
    if (shape.runs == 1) record(shape);
    if (shape.graph) {
      stream_.launch(shape.graph);
    } else {
      enqueue_all(shape);
    }
    ++shape.runs;
  }
  NamedTensors result = outputs(shape);
  for (const ValueId id : graph_.inputs) values_[index(id)] = Tensor();
  if (progress) progress(steps, steps);
  return result;
}

DeviceTiming CudaExecutor::time_on_device(const NamedTensors& inputs, double budget_s) {
  constexpr int64_t kFlushBytes = int64_t{256} << 20;
  constexpr int kFewest = 10, kMost = 100;
  CudaShape& shape = bind(inputs);
  upload(shape);
  for (int i = 0; i < 2; ++i) enqueue_all(shape);
  stream_.synchronize();
  if (!shape.graph) record(shape);
  const cuda::DevicePtr& gpu = program_->device();
  const cuda::Buffer flush(gpu, kFlushBytes, "overwriting the cache");
  const cuda::Event before(gpu), after(gpu);
  auto replay = [&] {
    stream_.fill(flush.address(), 0, kFlushBytes);
    before.record(stream_);
    stream_.launch(shape.graph);
    after.record(stream_);
    after.synchronize();
    return after.microseconds_since(before);
  };
  replay();
  const double once = std::max(replay(), 1.0) * 1e-6;
  const int count = std::clamp(static_cast<int>(budget_s / once), kFewest, kMost);
  std::vector<double> microseconds;
  for (int i = 0; i < count; ++i) microseconds.push_back(replay());
  std::sort(microseconds.begin(), microseconds.end());
  return {microseconds[microseconds.size() / 2], microseconds.front(), count};
}

std::unique_ptr<Executor> make_cuda_executor(std::shared_ptr<const CompiledProgram> program,
                                             const SessionOptions& options) {
  return std::make_unique<CudaExecutor>(std::move(program), options);
}

bool has_gpu() {
  try {
    return cuda::Device::open() != nullptr;
  } catch (const UserError&) {
    return false;
  }
}

}  // namespace redfuser
