// Pools: reductions over windows of the input.
#include <limits>

#include "codegen/convolution/windows.h"
#include "codegen/elementwise/elementwise_kernel.h"
#include "codegen/opaque/line_windows.h"
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
  const size_t present = view.has_output(0) ? 0 : 1;
  result.output = axes_of(pool, builder.shape(view.node().outputs[present]), "o");
  std::vector<ir::Expr> counts;
  for (size_t i = 0; i < result.w.kernel.size(); ++i) {
    counts.push_back(tap_count(view, result.w, i));
  }
  result.taps = axes_of(pool, counts, "k");
  return result;
}

void add_pool(StepBuilder& builder, const ops::NodeView& view, const PoolWindow& p,
              const char* name, ir::Expr body, size_t output = 0) {
  const ir::ValueId value = view.node().outputs[output];
  add_map(builder, name, builder.memory_axes(value, p.output),
          {{value, builder.flat.flat(body), builder.offset_of(value, p.output)}},
          std::string(name) + "\n");
}

ir::Expr reduced(ir::ExprPool& pool, ir::Reduction reduction, const std::vector<ir::Expr>& taps,
                 ir::Expr body) {
  for (size_t i = taps.size(); i-- > 0;) body = pool.reduce(reduction, taps[i], body);
  return body;
}

// The number of taps of a window along one dimension that an average divides by: those of n taps
// from `first` on, d apart, that are before `end`, and not before 0 where padding does not count.
ir::Expr counted_taps(const ops::NodeView& view, const PoolWindow& p, size_t i) {
  ir::ExprPool& pool = view.pool();
  if (!p.w.padded) return pool.integer(p.w.kernel[i]);
  const bool include_pad = view.integer("count_include_pad", 0) != 0;
  ir::Expr first =
      pool.sub(pool.mul(p.output[i + 2], pool.integer(p.w.stride[i])), p.w.pad_begin[i]);
  ir::Expr size = view.shape(0)[i + 2], dilation = pool.integer(p.w.dilation[i]);
  // Taps before a place.
  const auto before = [&](ir::Expr place) {
    return ops::ceil_div(pool, pool.sub(place, first), dilation);
  };
  ir::Expr zero = pool.integer(0);
  ir::Expr end = before(include_pad ? pool.add(size, p.w.pad_end[i]) : size);
  end = pool.make(ir::ExprOp::Min, {end, p.taps[i]->extent()});
  ir::Expr begin = include_pad ? zero : pool.make(ir::ExprOp::Max, {before(zero), zero});
  return pool.make(ir::ExprOp::Max, {pool.sub(end, begin), zero});
}

// The place of the first maximum of every window: the least number of a tap that has it, NaN above
// all, as a position in the whole input.
ir::Expr place_of_maximum(const ops::NodeView& view, const PoolWindow& p, ir::Expr x,
                          ir::Expr largest) {
  ir::ExprPool& pool = view.pool();
  ir::Expr number = pool.integer(0);
  int64_t taps = 1;
  for (size_t i = 0; i < p.taps.size(); ++i) {
    number = pool.add(pool.mul(number, pool.integer(p.w.kernel[i])), p.taps[i]);
    taps *= p.w.kernel[i];
  }
  ir::Expr found = pool.make(ir::ExprOp::Equal, {x, largest});
  if (is_float(x->dtype)) {
    const auto is_nan = [&](ir::Expr e) { return pool.make(ir::ExprOp::IsNaN, {e}); };
    found = pool.make(ir::ExprOp::Or,
                      {found, pool.make(ir::ExprOp::And, {is_nan(x), is_nan(largest)})});
  }
  const TapPlace under = place_of(view, p.w, tail(p.output), p.taps);
  if (under.inside) found = pool.make(ir::ExprOp::And, {found, under.inside});
  ir::Expr first =
      reduced(pool, ir::Reduction::Min, p.taps, pool.select(found, number, pool.integer(taps)));
  std::vector<ir::Expr> best(p.taps.size());
  for (size_t i = best.size(); i-- > 0;) {
    best[i] = pool.floormod(first, pool.integer(p.w.kernel[i]));
    first = pool.floordiv(first, pool.integer(p.w.kernel[i]));
  }
  const TapPlace place = place_of(view, p.w, tail(p.output), best);
  const bool column_major = view.integer("storage_order", 0) != 0;
  ir::Expr position = pool.add(pool.mul(p.output[0], view.shape(0)[1]), p.output[1]);
  ir::Expr within = pool.integer(0), plane = pool.integer(1);
  for (size_t n = 0; n < best.size(); ++n) {
    const size_t i = column_major ? best.size() - 1 - n : n;
    within = pool.add(pool.mul(within, view.shape(0)[i + 2]), place.at[i]);
    plane = pool.mul(plane, view.shape(0)[i + 2]);
  }
  return pool.add(pool.mul(position, plane), within);
}

}  // namespace

void generate_max_pool(StepBuilder& builder, const ops::NodeView& view) {
  ir::ExprPool& pool = builder.pool();
  const PoolWindow p = pool_window(builder, view);
  const DType dtype = view.dtype(0);
  ir::Expr outside = is_float(dtype) ? pool.number(-std::numeric_limits<double>::infinity(), dtype)
                                     : pool.number_int(ir::lowest_word(dtype), dtype);
  ir::Expr x = tap(view, p.w, p.output[0], p.output[1], tail(p.output), p.taps, outside);
  ir::Expr largest = reduced(pool, ir::Reduction::Max, p.taps, x);
  const auto add = [&](StepBuilder& to, WindowWay way) {
    const auto same = [](ir::Expr element) { return element; };
    const WindowReduction of{ir::Reduction::Max, outside, p.output, p.taps, same};
    add_pool(to, view, p, "max_pool", reduced_by(way, to, view, p.w, of));
  };
  if (view.has_output(0)) add(builder, window_way(builder, view, p.w, add));
  if (!view.has_output(1)) return;
  add_pool(builder, view, p, "max_pool_indices", place_of_maximum(view, p, x, largest), 1);
}

// The p-norm of every window.
void generate_lp_pool(StepBuilder& builder, const ops::NodeView& view) {
  ir::ExprPool& pool = builder.pool();
  const PoolWindow window = pool_window(builder, view);
  const DType dtype = view.dtype(0), wide = ops::computing_type(dtype);
  const int64_t p = view.integer("p", 2);
  const auto power = [&](ir::Expr element) {
    ir::Expr size = pool.make(ir::ExprOp::Abs, {pool.cast(wide, element)});
    if (p == 1 || p == 2) return p == 1 ? size : pool.mul(size, size);
    return pool.make(ir::ExprOp::Pow, {size, pool.number(static_cast<double>(p), wide)});
  };
  const auto root = [&](ir::Expr sum) {
    if (p == 1 || p == 2) return p == 1 ? sum : pool.make(ir::ExprOp::Sqrt, {sum});
    return pool.make(ir::ExprOp::Pow, {sum, pool.number(1 / static_cast<double>(p), wide)});
  };
  const auto add = [&](StepBuilder& to, WindowWay way) {
    const WindowReduction of{ir::Reduction::Sum, pool.number(0, wide), window.output, window.taps,
                             power};
    ir::Expr sum = reduced_by(way, to, view, window.w, of);
    add_pool(to, view, window, "lp_pool", pool.cast(dtype, root(sum)));
  };
  add(builder, window_way(builder, view, window.w, add));
}

void generate_average_pool(StepBuilder& builder, const ops::NodeView& view) {
  ir::ExprPool& pool = builder.pool();
  const PoolWindow p = pool_window(builder, view);
  const DType dtype = view.dtype(0), wide = ops::computing_type(dtype);
  ir::Expr count = pool.integer(1);
  for (size_t i = 0; i < p.taps.size(); ++i) count = pool.mul(count, counted_taps(view, p, i));
  ir::Expr divisor = pool.cast(wide, pool.make(ir::ExprOp::Max, {count, pool.integer(1)}));
  const auto add = [&](StepBuilder& to, WindowWay way) {
    const auto cast = [&](ir::Expr element) { return pool.cast(wide, element); };
    const WindowReduction of{ir::Reduction::Sum, pool.number(0, wide), p.output, p.taps, cast};
    ir::Expr sum = reduced_by(way, to, view, p.w, of);
    add_pool(to, view, p, "average_pool", pool.cast(dtype, pool.div(sum, divisor)));
  };
  add(builder, window_way(builder, view, p.w, add));
}

}  // namespace redfuser::codegen
