#include "runtime/gpu/executor.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "codegen/core/target_table.h"
#include "cuda/nvrtc.h"
#include "runtime/load/fallback.h"
#include "runtime/load/reorder.h"
#include "runtime/program/bind_inputs.h"
#include "runtime/program/sizes/size_checks.h"

namespace redfuser::runtime {
namespace {

constexpr int64_t kCounterBytes = codegen::kLaunchCounters * sizeof(unsigned);

size_t index(ir::ValueId id) { return static_cast<size_t>(id); }

// Larger transfers use the caller's memory directly.
constexpr int64_t kMaxStaged = int64_t{64} << 20;

}  // namespace

GpuExecutor::GpuExecutor(std::shared_ptr<const CompiledProgram> program,
                         const SessionOptions& options)
    : compiled_(std::move(program)),
      program_(cuda_program(compiled_, options)),
      options_(options),
      steps_(program_->steps()),
      graph_(compiled_->graph()),
      memory_limit_(options.memory_limit),
      kept_shapes_(static_cast<size_t>(std::max(options.kept_shapes, 1))),
      stream_((program_->device()->make_current(), program_->device())),
      ordered_(program_->device()),
      staged_(program_->device()),
      counter_(program_->device(), kCounterBytes, "counters"),
      values_(graph_.values.size()),
      timer_(program_->device()) {
  stream_.fill(counter_.address(), 0, kCounterBytes);
  stream_.synchronize();
  device = program_->device()->info().name;
  notes = program_->notes();
  for (std::string& note : host_notes(program_->host().reasons())) notes.push_back(std::move(note));
  if (options.tune) tuner_ = std::make_unique<KernelTuner>(*program_, options);
  const int driver = program_->device()->info().driver_version;
  versions = {{"driver", fmt::format("{}.{}", driver / 1000, driver % 1000 / 10)},
              {"nvrtc", cuda::nvrtc_version()}};
  for (const select::NamedMachine& known : select::known_machines()) {
    if (known.machine.architecture != program_->device()->info().architecture) continue;
    versions["target"] = known.name;
  }
  if (!program_->host().empty()) {
    host_run_ = std::make_unique<HostRun>(*program_, options.threads);
  }
  if (program_->has_products()) {
    versions["cublaslt"] = cuda::ProductLibrary::version();
    workspace_ = cuda::Buffer(program_->device(), cuda::ProductLibrary::kWorkspaceBytes,
                              "the workspace of products");
  }
}

GpuExecutor::~GpuExecutor() {
  try {
    program_->device()->make_current();
    stream_.synchronize();
    staged_.synchronize();
  } catch (const std::exception&) {
    // The run that failed has thrown the error.
  }
}

void GpuExecutor::bind_sizes(const NamedTensors& inputs) {
  program_->device()->make_current();
  prepared_.reset();
  bind_inputs(*compiled_, inputs, values_, symbols_, outer_symbols_);
  SizeChecks(graph_).run(symbols_);
}

void GpuExecutor::check_positions(const std::function<bool(ir::ValueId)>& on_host) {
  cpu::RunContext context{graph_, values_, symbols_, host_};
  const bool passed = passed_sizes_ == symbols_;
  for (const cpu::PositionGuard& guard : compiled_->input_guards) {
    if (passed && guard.fixed()) continue;
    const auto readable = [&](ir::ValueId id) {
      return graph_.values[index(id)].is_constant() || on_host(id);
    };
    if (std::all_of(guard.reads().begin(), guard.reads().end(), readable)) guard.run(context);
  }
  passed_sizes_ = symbols_;
}

BoundProgram& GpuExecutor::bind(const NamedTensors& inputs) {
  bind_sizes(inputs);
  check_positions([](ir::ValueId) { return true; });
  BoundProgram& shape = shape_for({}, [this](const BoundProgram& to) { upload(to); });
  launches = shape.launches();
  tunings = shape.tunings;
  return shape;
}

char* GpuExecutor::staging(int64_t bytes) {
  if (bytes > kMaxStaged) return nullptr;
  staged_.synchronize();
  if (bytes > staging_.bytes()) {
    staging_ = cuda::HostBuffer();
    staging_ = cuda::HostBuffer(program_->device(), bytes);
  }
  return staging_.data();
}

void GpuExecutor::upload(const BoundProgram& shape) {
  int64_t total = 0;
  std::vector<ir::ValueId> inputs;
  for (const ir::ValueId id : graph_.inputs) {
    if (program_->host().keeps(id)) continue;
    inputs.push_back(id);
    total += static_cast<int64_t>(values_[index(id)].bytes());
  }
  char* stage = staging(total);
  std::vector<const void*> sources;
  for (const ir::ValueId id : inputs) {
    const Tensor& tensor = values_[index(id)];
    sources.push_back(tensor.data());
    if (stage == nullptr || tensor.bytes() == 0) continue;
    sources.back() = std::memcpy(stage, tensor.data(), tensor.bytes());
    stage += tensor.bytes();
  }
  timer_.mark(RunTimer::kStart, stream_);
  for (size_t i = 0; i < sources.size(); ++i) {
    stream_.to_device(shape.address(inputs[i]), sources[i],
                      static_cast<int64_t>(values_[index(inputs[i])].bytes()));
  }
  timer_.mark(RunTimer::kInputsCopied, stream_);
}

void GpuExecutor::enqueue_all(BoundProgram& shape, const cuda::Stream& stream) {
  begin_host_run();
  bool behind_kernel = false;
  for (size_t i = 0; i < shape.steps(); ++i) {
    enqueue_step(shape, i, stream, behind_kernel && host_run_ == nullptr);
    if (!shape.calls(i).empty()) behind_kernel = shape.ends_with_kernel(i);
  }
}

void GpuExecutor::begin_host_run() {
  if (host_run_) host_run_->begin(symbols_, values_);
}

// A step reads no value that it writes, so what its first calls have written does not matter.
void GpuExecutor::enqueue_step(BoundProgram& shape, size_t step, const cuda::Stream& stream,
                               bool early) {
  if (program_->host().has(step)) {
    if (progress) progress(static_cast<int>(step), static_cast<int>(shape.steps()));
    return host_run_->run(shape, step, stream);
  }
  for (;;) {
    try {
      return shape.enqueue(step, stream, workspace_.address(), early);
    } catch (const StepFailure& failure) {
      replace(shape, failure);
    }
  }
}

void GpuExecutor::replace_default(const StepFailure& failure) {
  KernelLoader loader(program_->device(), options_);
  Fallback fallback(*compiled_, program_->target(), program_->joined(), loader);
  LoadedGpuStep next =
      fallback.next(failure.step, steps_[failure.step]->form, failure.family, failure.error);
  while (!program_->has_products() && calls_products(next.step->form)) {
    const auto closed = std::make_exception_ptr(InternalError("the library is not open"));
    next = fallback.next(failure.step, next.step->form, codegen::kLibraryFamily, closed);
  }
  steps_[failure.step] = std::move(next.step);
  for (std::string& note : fallback.take_notes()) notes.push_back(std::move(note));
}

bool GpuExecutor::take_sizes(const BoundProgram& shape, size_t begin, size_t end,
                             const cuda::Stream& stream) {
  if (host_run_) {
    for (size_t i = 0; i < symbols_.size(); ++i) {
      if (symbols_[i] < 0) symbols_[i] = host_run_->symbols()[i];
    }
  }
  std::vector<size_t> finders;
  for (size_t step = begin; step < end; ++step) {
    if (shape.loaded(step)->form.found) finders.push_back(step);
  }
  if (finders.empty()) return false;
  constexpr auto kBytes = static_cast<int64_t>(sizeof(int64_t));
  if (found_.bytes() == 0) {
    found_ = cuda::HostBuffer(program_->device(), kBytes * static_cast<int64_t>(shape.steps()));
  }
  auto* const sizes = reinterpret_cast<int64_t*>(found_.data());
  for (size_t i = 0; i < finders.size(); ++i) {
    stream.to_host(sizes + i, shape.found_at(finders[i]), kBytes);
  }
  stream.synchronize();
  for (size_t i = 0; i < finders.size(); ++i) {
    const codegen::FoundSize& found = *shape.loaded(finders[i])->form.found;
    const int64_t most = ir::evaluate_size(found.most, symbols_);
    RF_CHECK(sizes[i] >= 0 && sizes[i] <= most, "step \"{}\" finds {} elements of at most {}",
             compiled_->steps[finders[i]].label, sizes[i], most);
    symbols_[index(found.symbol->integer)] = sizes[i];
  }
  SizeChecks(graph_).run(symbols_);
  return true;
}

// Of a shape that does not have the default form, as another shape's run has replaced it or tuning
// has chosen another, the default is taken.
void GpuExecutor::replace(BoundProgram& shape, const StepFailure& failure) {
  const size_t step = failure.step;
  if (shape.loaded(step) == steps_[step]) replace_default(failure);
  const int64_t bytes = shape.scratch_bytes(steps_[step]->form);
  shape.replace(step, steps_[step],
                cuda::Buffer(program_->device(), bytes, "the scratch memory of a step"));
  std::erase_if(shape.tunings, [&](const StepTuning& tuning) { return tuning.step == step; });
  peak += bytes;
}

void GpuExecutor::launch(BoundProgram& shape, const cuda::Stream& stream) {
  // A kernel may be loaded at its first launch, which a recording does not allow.
  const bool loaded = shape.runs++ > 0;
  if (loaded && host_run_ == nullptr &&
      shape.recording.prepare(shape, stream_, workspace_.address())) {
    stream.launch(shape.recording.graph());
  } else {
    enqueue_all(shape, stream);
  }
}

// Step by step, for callers that keep or replace values.
void GpuExecutor::run_steps(BoundProgram& shape) {
  begin_host_run();
  for (size_t i = 0; i < shape.steps(); ++i) {
    enqueue_step(shape, i, stream_);
    take_sizes(shape, i, i + 1, stream_);
    for (const size_t done : program_->joined().done_by(i)) {
      if (!program_->joined().writes_results(done)) continue;
      if (on_value) show(shape, done);
      if (!keeps_any()) continue;
      for (const ir::ValueId id : compiled_->plan.steps[done].writes) {
        const std::string& name = graph_.values[index(id)].name;
        if (keeps(name)) kept[name] = fetch(shape, id);
      }
    }
  }
  stream_.synchronize();
}

void GpuExecutor::show(const BoundProgram& shape, size_t number) {
  const fuse::Step& step = compiled_->plan.steps[number];
  for (const ir::ValueId id : step.writes) {
    const Tensor value = fetch(shape, id);
    stream_.synchronize();
    const Tensor other = on_value(graph_.values[index(id)].name, value);
    if (!other.defined() || std::holds_alternative<fuse::AliasStep>(step.kind)) continue;
    if (program_->host().keeps(id)) {
      host_run_->replace(id, other);
      continue;
    }
    const codegen::MemoryOrder* order = program_->target().order_of(id);
    const Tensor given = order ? reordered(other, *order) : other;
    stream_.to_device(shape.address(id), given.data(), static_cast<int64_t>(given.bytes()));
    stream_.synchronize();
  }
}

Tensor GpuExecutor::fetch(const BoundProgram& shape, ir::ValueId value) {
  if (program_->host().keeps(value)) return copied(host_run_->value(value));
  Tensor tensor(graph_.values[index(value)].dtype, cpu::dims_of(graph_, value, symbols_));
  stream_.to_host(tensor.mutable_data(), shape.address(value),
                  static_cast<int64_t>(tensor.bytes()));
  const codegen::MemoryOrder* order = program_->target().order_of(value);
  if (order == nullptr) return tensor;
  stream_.synchronize();
  return restored(tensor, *order);
}

NamedTensors GpuExecutor::outputs(const BoundProgram& shape) {
  NamedTensors result;
  std::vector<std::pair<Tensor*, ir::ValueId>> computed;
  int64_t total = 0;
  for (const ir::ValueId id : graph_.outputs) {
    const ir::Value& value = graph_.values[index(id)];
    Tensor& tensor = result[value.name];
    if (value.is_constant() || program_->host().keeps(id)) {
      tensor = copied(value.is_constant() ? value.constant : host_run_->value(id));
      continue;
    }
    tensor = Tensor(value.dtype, cpu::dims_of(graph_, id, symbols_));
    computed.emplace_back(&tensor, id);
    total += static_cast<int64_t>(tensor.bytes());
  }
  // When the outputs are copied, the inputs have been.
  char* const stage = staging(total);
  char* target = stage;
  for (const auto& [tensor, id] : computed) {
    stream_.to_host(stage != nullptr ? target : tensor->mutable_data(), shape.address(id),
                    static_cast<int64_t>(tensor->bytes()));
    target += tensor->bytes();
  }
  timer_.mark(RunTimer::kOutputsCopied, stream_);
  stream_.synchronize();
  target = stage;
  for (const auto& [tensor, id] : computed) {
    if (stage == nullptr || tensor->bytes() == 0) continue;
    std::memcpy(tensor->mutable_data(), target, tensor->bytes());
    target += tensor->bytes();
  }
  return result;
}

NamedTensors GpuExecutor::run(const NamedTensors& inputs) {
  times.clear();
  kept.clear();
  BoundProgram& shape = bind(inputs);
  const int steps = static_cast<int>(shape.steps());
  if (progress) progress(0, steps);
  timer_.begin(timing);
  const bool shows = keeps_any() || on_value;
  if (shows || !profiling) upload(shape);
  if (shows) {
    run_steps(shape);
  } else if (!profiling) {
    timer_.time_enqueue([&] { launch(shape, stream_); });
  }
  if (profiling) profile_steps(shape, stream_, [this](const BoundProgram& to) { upload(to); });
  timer_.mark(RunTimer::kComputed, stream_);
  if (!shows) take_sizes(shape, 0, shape.steps(), stream_);
  NamedTensors result = outputs(shape);
  for (const ir::ValueId id : graph_.inputs) values_[index(id)] = Tensor();
  if (progress) progress(steps, steps);
  return result;
}

DeviceTiming GpuExecutor::time_on_device(const NamedTensors& inputs, double budget_s) {
  constexpr int64_t kFlushBytes = int64_t{256} << 20;
  constexpr int kMin = 10, kMax = 100;
  if (host_run_) user_error("steps on the CPU have no time on the device: {}", notes.back());
  BoundProgram& shape = bind(inputs);
  upload(shape);
  for (int i = 0; i < 2; ++i) enqueue_all(shape, stream_);
  stream_.synchronize();
  constexpr int kMaxRecordings = 10;
  bool recorded = false;
  for (int i = 0; !recorded && i < kMaxRecordings; ++i) {
    recorded = shape.recording.record(shape, stream_, workspace_.address());
  }
  RF_CHECK(recorded, "a CUDA graph of the run cannot be recorded");
  const cuda::DevicePtr& gpu = program_->device();
  const cuda::Buffer flush(gpu, kFlushBytes, "overwriting the cache");
  const cuda::Event before(gpu), after(gpu);
  auto replay = [&] {
    stream_.fill(flush.address(), 0, kFlushBytes);
    before.record(stream_);
    stream_.launch(shape.recording.graph());
    after.record(stream_);
    after.synchronize();
    return after.microseconds_since(before);
  };
  replay();
  const double once = std::max(replay(), 1.0) * 1e-6;
  const int count = std::clamp(static_cast<int>(budget_s / once), kMin, kMax);
  std::vector<double> microseconds;
  for (int i = 0; i < count; ++i) microseconds.push_back(replay());
  std::sort(microseconds.begin(), microseconds.end());
  return {microseconds[microseconds.size() / 2], microseconds.front(), count};
}

}  // namespace redfuser::runtime
