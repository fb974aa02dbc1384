// Pools: reductions over windows of the input.
#include <limits>

#include "codegen/convolution/windows.h"
#include "codegen/elementwise/elementwise_kernel.h"
#include "codegen/opaque/opaque_kernels.h"
#include "ir/scalars/integers.h"
#include "ops/sizes.h"

namespace redfuser::codegen {
namespace {

struct PoolWindow {
  Windows w;
  std::vector<ir::Expr> output, taps;
};

// The taps of a window along a dimension. Only under ceil_mode may a kernel be larger than the
// padded input; taps behind the padding count nowhere.
ir::Expr tap_count(const ops::NodeView& view, const Windows& w, size_t i) {
  ir::ExprPool& pool = view.pool();
  ir::Expr kernel = pool.integer(w.kernel[i]);
  if (view.integer("ceil_mode", 0) == 0) return kernel;
  ir::Expr padded = pool.add(view.shape(0)[i + 2], pool.add(w.pad_begin[i], w.pad_end[i]));
  return pool.make(ir::ExprOp::Min,
                   {kernel, ops::ceil_div(pool, padded, pool.integer(w.dilation[i]))});
}

PoolWindow pool_window(StepBuilder& builder, const ops::NodeView& view) {
  ir::ExprPool& pool = builder.pool();
  PoolWindow result;
  result.w = windows_of(view, view.integers("kernel_shape", {}));
  result.output = axes_of(pool, builder.shape(view.node().outputs[0]), "o");
  std::vector<ir::Expr> counts;
  for (size_t i = 0; i < result.w.kernel.size(); ++i) {
    counts.push_back(tap_count(view, result.w, i));
  }
  result.taps = axes_of(pool, counts, "k");
  return result;
}

void add_pool(StepBuilder& builder, const ops::NodeView& view, const PoolWindow& p,
              const char* name, ir::Expr body) {
  const ir::ValueId value = view.node().outputs[0];
  add_map(builder, name, builder.memory_axes(value, p.output),
          {{value, builder.flat.flat(body), builder.offset_of(value, p.output)}},
          std::string(name) + "\n");
}

ir::Expr reduced(ir::ExprPool& pool, ir::Reduction reduction, const std::vector<ir::Expr>& taps,
                 ir::Expr body) {
  for (size_t i = taps.size(); i-- > 0;) body = pool.reduce(reduction, taps[i], body);
  return body;
}

// The number of taps of a window along one dimension that an average divides by.
ir::Expr counted_taps(const ops::NodeView& view, const PoolWindow& p, size_t i) {
  ir::ExprPool& pool = view.pool();
  if (!p.w.padded) return pool.integer(p.w.kernel[i]);
  const bool include_pad = view.integer("count_include_pad", 0) != 0;
  ir::Expr position = pool.sub(pool.add(pool.mul(p.output[i + 2], pool.integer(p.w.stride[i])),
                                        pool.mul(p.taps[i], pool.integer(p.w.dilation[i]))),
                               p.w.pad_begin[i]);
  ir::Expr size = view.shape(0)[i + 2];
  ir::Expr inside = ops::less(pool, position, include_pad ? pool.add(size, p.w.pad_end[i]) : size);
  if (!include_pad)
    inside = pool.make(ir::ExprOp::And, {ops::less(pool, pool.integer(-1), position), inside});
  return pool.reduce(ir::Reduction::Sum, p.taps[i],
                     pool.select(inside, pool.integer(1), pool.integer(0)));
}

}  // namespace

void generate_max_pool(StepBuilder& builder, const ops::NodeView& view) {
  ir::ExprPool& pool = builder.pool();
  if (view.has_output(1)) view.fail("the indices of a maximum have no kernel on a GPU");
  const PoolWindow p = pool_window(builder, view);
  const DType dtype = view.dtype(0);
  ir::Expr outside = is_float(dtype) ? pool.number(-std::numeric_limits<double>::infinity(), dtype)
                                     : pool.number_int(ir::lowest_word(dtype), dtype);
  ir::Expr x = tap(view, p.w, p.output[0], p.output[1], tail(p.output), p.taps, outside);
  add_pool(builder, view, p, "max_pool", reduced(pool, ir::Reduction::Max, p.taps, x));
}

void generate_average_pool(StepBuilder& builder, const ops::NodeView& view) {
  ir::ExprPool& pool = builder.pool();
  const PoolWindow p = pool_window(builder, view);
  const DType dtype = view.dtype(0);
  ir::Expr x =
      tap(view, p.w, p.output[0], p.output[1], tail(p.output), p.taps, pool.number(0, dtype));
  ir::Expr count = pool.integer(1);
  for (size_t i = 0; i < p.taps.size(); ++i) count = pool.mul(count, counted_taps(view, p, i));
  const DType wide = ops::computing_type(dtype);
  ir::Expr sum = pool.cast(wide, reduced(pool, ir::Reduction::Sum, p.taps, x));
  ir::Expr divisor = pool.cast(wide, pool.make(ir::ExprOp::Max, {count, pool.integer(1)}));
  add_pool(builder, view, p, "average_pool", pool.cast(dtype, pool.div(sum, divisor)));
}

}  // namespace redfuser::codegen
