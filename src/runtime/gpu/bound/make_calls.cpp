// The calls of BoundProgram, with their arguments.
#include <algorithm>

#include "base/error.h"
#include "cuda/tensor_map.h"
#include "runtime/gpu/bound/bound_program.h"

namespace redfuser::runtime {
namespace {

// Whether all blocks of the launch have the room at one time where half of a multiprocessor's
// memory is shared memory. More blocks than that would wait for each other.
bool fits_in_half(const codegen::KernelLaunch& launch, const cuda::LaunchShape& shape,
                  const select::Machine& machine) {
  const int half = (machine.shared_bytes + select::kBlockReserved) / 2;
  const int bytes = launch.shared + launch.static_shared + select::kBlockReserved;
  const int64_t blocks = int64_t{1} * shape.grid[0] * shape.grid[1] * shape.grid[2];
  const int each = std::min(half / bytes, select::kThreadsOfMultiprocessor / launch.block);
  return blocks <= int64_t{1} * each * machine.multiprocessors;
}

}  // namespace

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
  for (const ir::Expr first : view.lower) layout.lower.push_back(static_cast<int>(size(first)));
  for (const ir::Expr last : view.upper) layout.upper.push_back(static_cast<int>(size(last)));
  for (const int step : view.steps) layout.steps.push_back(static_cast<unsigned>(step));
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
  result.shape.together = launch.together;
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
  result.early = launch.early && !launch.together;
  result.shape.half_shared = result.early && fits_in_half(launch, result.shape, program_.target());
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

}  // namespace redfuser::runtime
