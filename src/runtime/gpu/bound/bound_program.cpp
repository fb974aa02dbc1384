#include "runtime/gpu/bound/bound_program.h"

#include <numeric>

#include "base/error.h"

namespace redfuser::runtime {

BoundProgram::BoundProgram(const GpuProgram& program, LoadedSteps steps, MemoryPlan layout,
                           std::vector<int64_t> symbols, cuda::DevicePointer arena,
                           cuda::DevicePointer counter, Addresses addresses)
    : program_(program),
      steps_(std::move(steps)),
      layout_(std::move(layout)),
      symbols_(std::move(symbols)),
      arena_(arena),
      counter_(counter),
      addresses_(std::move(addresses)),
      calls_(steps_.size()) {
  std::vector<size_t> all(steps_.size());
  std::iota(all.begin(), all.end(), size_t{0});
  make_calls(all);
}

BoundProgram::Places BoundProgram::places_of(size_t step) const {
  Places places;
  const codegen::GpuStep& form = steps_[step]->form;
  const auto own = replaced_.find(step);
  cuda::DevicePointer next = own != replaced_.end() ? own->second.address() : 0;
  for (size_t i = 0; i < form.scratch.size(); ++i) {
    places.push_back(next);
    if (own != replaced_.end()) {
      next += static_cast<uint64_t>(aligned_bytes(size(form.scratch[i].bytes)));
    } else {
      const int64_t offset = layout_.scratch_offset(step, static_cast<int>(i));
      places.back() = arena_ + static_cast<uint64_t>(offset);
    }
  }
  return places;
}

void BoundProgram::make_calls(const std::vector<size_t>& steps) {
  KnownSizes known;
  std::vector<Calls> made;
  known_sizes_ = &known;
  try {
    for (const size_t step : steps) {
      made.push_back(make_calls(*steps_[step], step, places_of(step)));
    }
  } catch (...) {
    known_sizes_ = nullptr;
    throw;
  }
  known_sizes_ = nullptr;
  for (size_t i = 0; i < steps.size(); ++i) calls_[steps[i]] = std::move(made[i]);
}

StepMemory BoundProgram::memory(size_t step, cuda::DevicePointer workspace) const {
  StepMemory memory;
  const codegen::GpuStep& form = steps_[step]->form;
  const auto range_of = [&](ir::ValueId value) {
    const cuda::DevicePointer begin = address(value);
    return MemoryRange{begin, begin + static_cast<uint64_t>(room_of(value))};
  };
  const fuse::Plan& plan = program_.compiled().plan;
  std::set<ir::ValueId> written;
  for (const size_t done : program_.joined().done_by(step)) {
    for (const ir::ValueId value : plan.steps[done].writes) written.insert(plan.root(value));
  }
  visit_buffers(form, [&](const codegen::BufferRef& buffer) {
    if (buffer.value < 0) return;
    const ir::ValueId root = plan.root(buffer.value);
    if (program_.has_constant(root)) return;
    (written.count(root) ? memory.writes : memory.reads).push_back(range_of(buffer.value));
  });
  const Places places = places_of(step);
  for (size_t i = 0; i < places.size(); ++i) {
    const int64_t room = replaced_.count(step) ? size(form.scratch[i].bytes)
                                               : layout_.scratch_room(step, static_cast<int>(i));
    memory.writes.push_back({places[i], places[i] + static_cast<uint64_t>(room)});
  }
  for (const codegen::GpuCall& call : form.calls) {
    const auto* launch = std::get_if<codegen::KernelLaunch>(&call);
    if (launch == nullptr) memory.writes.push_back({workspace, workspace + 1});
    if (launch != nullptr && launch->counter) memory.writes.push_back({counter_, counter_ + 1});
  }
  return memory;
}

BoundProgram::Calls BoundProgram::calls_of(const LoadedStep& form, size_t step,
                                           cuda::DevicePointer scratch) const {
  Places places;
  for (const codegen::Scratch& need : form.form.scratch) {
    places.push_back(scratch);
    scratch += static_cast<uint64_t>(aligned_bytes(size(need.bytes)));
  }
  return make_calls(form, step, places);
}

int64_t BoundProgram::scratch_bytes(const codegen::GpuStep& form) const {
  int64_t bytes = 0;
  for (const codegen::Scratch& need : form.scratch) bytes += aligned_bytes(size(need.bytes));
  return bytes;
}

void BoundProgram::replace(size_t step, std::shared_ptr<const LoadedStep> form,
                           cuda::Buffer scratch) {
  steps_[step] = std::move(form);
  replaced_[step] = std::move(scratch);
  recording = Recording();
  dependences_.clear();
  make_calls({step});
}

int BoundProgram::launches() const {
  size_t count = 0;
  for (const Calls& calls : calls_) count += calls.size();
  return static_cast<int>(count);
}

cuda::DevicePointer BoundProgram::address(ir::ValueId value) const {
  const std::optional<int64_t> offset = layout_.offset(value);
  if (offset) return arena_ + static_cast<uint64_t>(*offset);
  const ir::ValueId root = program_.compiled().plan.root(value);
  const auto elsewhere = addresses_.find(root);
  if (elsewhere != addresses_.end()) return elsewhere->second;
  RF_CHECK(program_.has_constant(root), "\"{}\" is nowhere on the GPU",
           program_.graph().values[static_cast<size_t>(value)].name);
  return program_.constant(root);
}

Dims BoundProgram::dims(ir::ValueId value) const {
  return cpu::dims_of(program_.graph(), value, symbols_);
}

int64_t BoundProgram::room_of(ir::ValueId value) const {
  if (layout_.offset(value)) return layout_.room(value);
  const DType dtype = program_.graph().values[static_cast<size_t>(value)].dtype;
  const Dims dims = program_.memory_dims(value, symbols_);
  return element_count(dims) * static_cast<int64_t>(size_of(dtype));
}

cuda::DevicePointer BoundProgram::resolve(const codegen::BufferRef& buffer,
                                          const Places& scratch) const {
  if (buffer.value >= 0) return address(buffer.value);
  return scratch.at(static_cast<size_t>(buffer.scratch));
}

void BoundProgram::enqueue(const Call& call, const cuda::Stream& stream,
                           cuda::DevicePointer workspace, bool early) {
  if (const auto* launch = std::get_if<Launch>(&call)) {
    cuda::KernelCall kernel = launch->call();
    kernel.shape.early = early && launch->early;
    stream.launch(kernel, launch->name);
  } else {
    std::get<cuda::ProductLibrary::Prepared>(call).run(stream, workspace);
  }
}

void BoundProgram::enqueue(const Calls& calls, const cuda::Stream& stream,
                           cuda::DevicePointer workspace) {
  bool early = false;
  for (const Call& call : calls) {
    enqueue(call, stream, workspace, early);
    early = std::holds_alternative<Launch>(call);
  }
}

std::string BoundProgram::name_of(const Call& call) {
  const auto* launch = std::get_if<Launch>(&call);
  return launch != nullptr ? launch->name : "cublaslt";
}

void BoundProgram::enqueue(size_t step, const cuda::Stream& stream, cuda::DevicePointer workspace,
                           bool early, const CallVisitor& then) const {
  for (const Call& call : calls_[step]) {
    try {
      enqueue(call, stream, workspace, early);
      if (then) then(call);
      early = std::holds_alternative<Launch>(call);
    } catch (const InternalError& error) {
      const auto* launch = std::get_if<Launch>(&call);
      throw StepFailure(step, launch != nullptr ? launch->family : "library",
                        std::current_exception(), error.what());
    }
  }
}

bool BoundProgram::ends_with_kernel(size_t step) const {
  return !calls_[step].empty() && std::holds_alternative<Launch>(calls_[step].back());
}

}  // namespace redfuser::runtime
