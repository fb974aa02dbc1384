#include "runtime/gpu/bound_program.h"

#include "base/error.h"
#include "cuda/tensor_map.h"

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
  KnownSizes known;
  known_sizes_ = &known;
  for (size_t step = 0; step < calls_.size(); ++step) make_calls(step);
  known_sizes_ = nullptr;
}

int64_t BoundProgram::size(ir::Expr expr) const {
  if (expr->is_constant() || known_sizes_ == nullptr) return evaluate_size(expr, symbols_);
  const auto known = known_sizes_->find(expr);
  if (known != known_sizes_->end()) return known->second;
  return (*known_sizes_)[expr] = evaluate_size(expr, symbols_);
}

BoundProgram::Calls BoundProgram::make_calls(const LoadedStep& form, size_t step,
                                             const Places& scratch) const {
  Calls calls;
  for (size_t i = 0; i < form.form.calls.size(); ++i) {
    const codegen::GpuCall& call = form.form.calls[i];
    const auto* launch = std::get_if<codegen::KernelLaunch>(&call);
    std::optional<Call> made = launch != nullptr
                                   ? make(*launch, form.functions[i], step, scratch)
                                   : make(std::get<codegen::ProductCall>(call), step, scratch);
    if (made) calls.push_back(std::move(*made));
  }
  return calls;
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

void BoundProgram::make_calls(size_t step) {
  calls_[step] = make_calls(*steps_[step], step, places_of(step));
}

StepMemory BoundProgram::memory(size_t step, cuda::DevicePointer workspace) const {
  StepMemory memory;
  const codegen::GpuStep& form = steps_[step]->form;
  const ir::Graph& graph = program_.graph();
  const auto range_of = [&](ir::ValueId value) {
    const auto width =
        static_cast<int64_t>(size_of(graph.values[static_cast<size_t>(value)].dtype));
    const cuda::DevicePointer begin = address(value);
    return MemoryRange{begin,
                       begin + static_cast<uint64_t>(element_count(layout_.dims(value)) * width)};
  };
  const fuse::Plan& plan = program_.compiled().plan;
  std::set<ir::ValueId> written;
  for (const ir::ValueId value : plan.steps[step].writes) written.insert(plan.root(value));
  visit_buffers(form, [&](const codegen::BufferRef& buffer) {
    if (buffer.value < 0) return;
    const ir::ValueId root = plan.root(buffer.value);
    if (program_.has_constant(root)) return;
    (written.count(root) ? memory.writes : memory.reads).push_back(range_of(buffer.value));
  });
  const Places places = places_of(step);
  for (size_t i = 0; i < places.size(); ++i) {
    memory.writes.push_back(
        {places[i], places[i] + static_cast<uint64_t>(size(form.scratch[i].bytes))});
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
  recordings = 0;
  graph = cuda::Graph();
  make_calls(step);
}

bool BoundProgram::touches(size_t step, const std::set<ir::ValueId>& moved) const {
  bool found = false;
  visit_buffers(steps_[step]->form, [&](const codegen::BufferRef& buffer) {
    found = found ||
            (buffer.value >= 0 && moved.count(program_.compiled().plan.root(buffer.value)) > 0);
  });
  return found;
}

void BoundProgram::move(const Addresses& addresses) {
  std::set<ir::ValueId> moved;
  for (const auto& [value, address] : addresses) {
    if (addresses_.at(value) != address) moved.insert(value);
  }
  if (moved.empty()) return;
  addresses_ = addresses;
  runs = recordings = 0;
  graph = cuda::Graph();
  for (size_t step = 0; step < calls_.size(); ++step) {
    if (touches(step, moved)) make_calls(step);
  }
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

cuda::DevicePointer BoundProgram::resolve(const codegen::BufferRef& buffer,
                                          const Places& scratch) const {
  if (buffer.value >= 0) return address(buffer.value);
  return scratch.at(static_cast<size_t>(buffer.scratch));
}

cuda::TensorMap BoundProgram::encode(const codegen::TmaView& view, const Places& scratch,
                                     const std::string& name) const {
  const uint64_t width = size_of(view.dtype);
  cuda::TensorLayout layout;
  layout.bfloat = view.dtype == DType::BFloat16;
  for (const ir::Expr dim : view.dims) layout.dims.push_back(static_cast<uint64_t>(size(dim)));
  for (const ir::Expr stride : view.strides) {
    layout.strides.push_back(static_cast<uint64_t>(size(stride)) * width);
  }
  for (const int edge : view.box) layout.box.push_back(static_cast<unsigned>(edge));
  const uint64_t offset = static_cast<uint64_t>(size(view.offset)) * width;
  return cuda::encode_tensor_map(layout, resolve(view.buffer, scratch) + offset, name);
}

std::optional<BoundProgram::Call> BoundProgram::make(const codegen::KernelLaunch& launch,
                                                     cuda::FunctionHandle function, size_t step,
                                                     const Places& scratch) const {
  constexpr int64_t kMaxBlocks[] = {INT32_MAX, 65535, 65535};
  Launch result;
  for (int i = 0; i < 3; ++i) {
    const int64_t blocks = size(launch.grid[i], 1);
    if (blocks <= 0) return std::nullopt;
    if (blocks > kMaxBlocks[i]) {
      user_error("\"{}\": {} blocks along dimension {} are more than a GPU takes ({})",
                 program_.compiled().steps[step].label, blocks, i, kMaxBlocks[i]);
    }
    result.shape.grid[i] = static_cast<uint32_t>(blocks);
  }
  result.function = function;
  result.shape.block = static_cast<uint32_t>(launch.block);
  result.shape.shared_bytes = static_cast<uint32_t>(launch.shared);
  result.shape.cluster = static_cast<uint32_t>(launch.cluster);
  for (const codegen::TmaView& view : launch.views) {
    result.maps.push_back(encode(view, scratch, launch.name));
  }
  for (const codegen::BufferRef& buffer : launch.buffers) {
    result.arguments.push_back(resolve(buffer, scratch));
  }
  for (const ir::Expr expr : launch.sizes) {
    result.arguments.push_back(static_cast<uint64_t>(size(expr)));
  }
  if (launch.counter) result.arguments.push_back(counter_);
  result.name = launch.name;
  result.family = launch.family;
  result.early = launch.prefetches && program_.target().architecture >= 90;
  return Call(std::move(result));
}

std::optional<BoundProgram::Call> BoundProgram::make(const codegen::ProductCall& call, size_t step,
                                                     const Places& scratch) const {
  cuda::Product product;
  product.dtype = call.dtype;
  product.result = call.result;
  product.batch = size(call.batch, 1);
  product.m = size(call.m, 1);
  product.n = size(call.n, 1);
  product.k = size(call.k, 1);
  if (product.batch == 0 || product.m == 0 || product.n == 0) return std::nullopt;
  auto shifted = [&](const codegen::BufferRef& buffer, ir::Expr offset) {
    return resolve(buffer, scratch) + static_cast<uint64_t>(size(offset, 0)) * size_of(call.dtype);
  };
  product.a = {shifted(call.a, call.a_offset), size(call.a_row, 0), size(call.a_column, 1),
               size(call.a_batch, 0)};
  product.b = {shifted(call.b, call.b_offset), size(call.b_row, 0), size(call.b_column, 1),
               size(call.b_batch, 0)};
  product.c = {resolve(call.c, scratch), size(call.c_row, 0), 1, size(call.c_batch, 0)};
  if (call.bias.defined()) product.bias = resolve(call.bias, scratch);
  if (call.addend.defined()) product.addend = resolve(call.addend, scratch);
  if (call.a_scale.defined()) product.a_scale = resolve(call.a_scale, scratch);
  if (call.b_scale.defined()) product.b_scale = resolve(call.b_scale, scratch);
  product.line_scales = call.line_scales;
  product.algorithm = call.algorithm;
  product.tf32 = program_.tf32();
  product.name = program_.compiled().steps[step].label;
  return Call(program_.products().prepare(product));
}

void BoundProgram::enqueue(const Call& call, const cuda::Stream& stream,
                           cuda::DevicePointer workspace, bool early) {
  if (const auto* launch = std::get_if<Launch>(&call)) {
    cuda::LaunchShape shape = launch->shape;
    shape.early = early && launch->early;
    stream.launch(launch->function, shape, launch->maps, launch->arguments, launch->name);
  } else {
    std::get<cuda::ProductLibrary::Prepared>(call).run(stream, workspace);
  }
}

void BoundProgram::enqueue(const Calls& calls, const cuda::Stream& stream,
                           cuda::DevicePointer workspace) {
  for (const Call& call : calls) enqueue(call, stream, workspace);
}

std::string BoundProgram::name_of(const Call& call) {
  const auto* launch = std::get_if<Launch>(&call);
  return launch != nullptr ? launch->name : "cublaslt";
}

void BoundProgram::enqueue(size_t step, const cuda::Stream& stream, cuda::DevicePointer workspace,
                           bool early) const {
  for (const Call& call : calls_[step]) {
    try {
      enqueue(call, stream, workspace, early);
      early = early && std::holds_alternative<Launch>(call);
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
