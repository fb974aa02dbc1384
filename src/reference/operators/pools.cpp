// Pools as sums, powers and maxima over their windows.
#include "reference/operators/pools.h"

#include <limits>

#include "ops/sizes.h"
#include "reference/operators/windows.h"

namespace redfuser::reference {
namespace {

// The reduction of a pool: its windows, their taps, and the element that a tap reads.
struct Pool {
  std::vector<Window> windows;
  std::vector<ir::Expr> taps;
  Place place;
  ir::Expr x;
};

Pool pool_of(const ops::LowerContext& context) {
  Pool result{windows_of(context, context.integers("kernel_shape", {})), {}, {}, nullptr};
  const auto out = context.index();
  result.taps = tap_axes(context, result.windows);
  result.place = place_of(context.pool(), result.windows, out.subspan(2), result.taps);
  result.x = context.read(0, joined({out[0], out[1]}, result.place.at));
  return result;
}

// Taps inside the input, or with `padded` inside the input and its padding.
ir::Expr count_of_taps(const ops::LowerContext& context, const Pool& of, bool padded) {
  ir::ExprPool& pool = context.pool();
  ir::Expr inside = of.place.inside;
  if (padded) {
    inside = pool.boolean(true);
    for (size_t d = 0; d < of.windows.size(); ++d) {
      const int64_t end = of.windows[d].input + of.windows[d].pad_end;
      inside = pool.make(ir::ExprOp::And, {inside, below(pool, of.place.at[d], end)});
    }
  }
  return over(pool, ir::Reduction::Sum, of.taps, pool.cast(DType::Int64, inside));
}

ir::Expr average_pool(ops::LowerContext& context) {
  ir::ExprPool& pool = context.pool();
  const Pool of = pool_of(context);
  const DType dtype = of.x->dtype;
  ir::Expr inside = pool.select(of.place.inside, of.x, pool.number(0, dtype));
  ir::Expr count = count_of_taps(context, of, context.integer("count_include_pad", 0) != 0);
  count = pool.make(ir::ExprOp::Max, {count, pool.integer(1)});
  return pool.div(over(pool, ir::Reduction::Sum, of.taps, inside), pool.cast(dtype, count));
}

ir::Expr lp_pool(ops::LowerContext& context) {
  ir::ExprPool& pool = context.pool();
  const Pool of = pool_of(context);
  const DType dtype = of.x->dtype;
  const auto p = static_cast<double>(context.integer("p", 2));
  ir::Expr power =
      pool.make(ir::ExprOp::Pow, {pool.make(ir::ExprOp::Abs, {of.x}), pool.number(p, dtype)});
  power = pool.select(of.place.inside, power, pool.number(0, dtype));
  ir::Expr sum = over(pool, ir::Reduction::Sum, of.taps, power);
  return pool.make(ir::ExprOp::Pow, {sum, pool.number(1 / p, dtype)});
}

// The taps as one axis, so that the position of the maximum tells which tap it is.
ir::Expr max_pool(ops::LowerContext& context) {
  ir::ExprPool& pool = context.pool();
  Pool of = pool_of(context);
  int64_t count = 1, plane = 1;
  for (const Window& w : of.windows) count *= w.kernel, plane *= w.input;
  const auto taps_of = [&](ir::Expr tap) {
    std::vector<ir::Expr> taps(of.windows.size());
    for (size_t d = taps.size(); d-- > 0;) {
      taps[d] = pool.floormod(tap, pool.integer(of.windows[d].kernel));
      tap = pool.floordiv(tap, pool.integer(of.windows[d].kernel));
    }
    return taps;
  };
  const auto out = context.index();
  ir::Expr tap = context.loop_axis(0, pool.integer(count));
  const Place place = place_of(pool, of.windows, out.subspan(2), taps_of(tap));
  ir::Expr x = context.read(0, joined({out[0], out[1]}, place.at));
  const double least = is_float(x->dtype) ? -std::numeric_limits<double>::infinity()
                                          : std::numeric_limits<double>::lowest();
  x = pool.select(place.inside, x, pool.number(least, x->dtype));
  if (context.output() == 0) return pool.reduce(ir::Reduction::Max, tap, x);
  ir::Expr best = pool.reduce(ir::Reduction::ArgMax, tap, x, nullptr, true);
  const Place at = place_of(pool, of.windows, out.subspan(2), taps_of(best));
  ir::Expr position = pool.integer(0);
  const bool column_major = context.integer("storage_order", 0) != 0;
  for (size_t i = 0; i < of.windows.size(); ++i) {
    const size_t d = column_major ? of.windows.size() - 1 - i : i;
    position = pool.add(pool.mul(position, pool.integer(of.windows[d].input)), at.at[d]);
  }
  ir::Expr number = pool.add(pool.mul(out[0], context.shape(0)[1]), out[1]);
  return pool.add(pool.mul(number, pool.integer(plane)), position);
}

}  // namespace

Lower pool_expression(std::string_view op) {
  if (op == "AveragePool") return average_pool;
  if (op == "LpPool") return lp_pool;
  if (op == "MaxPool") return max_pool;
  return nullptr;
}

}  // namespace redfuser::reference
