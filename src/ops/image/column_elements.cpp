#include "ops/image/column_elements.h"

#include "base/error.h"
#include "ops/arguments.h"
#include "ops/sizes.h"

namespace redfuser::ops {
namespace {

ir::Expr both(ir::ExprPool& pool, ir::Expr a, ir::Expr b) {
  return pool.make(ir::ExprOp::And, {a, b});
}

ir::Expr in_range(ir::ExprPool& pool, ir::Expr x, ir::Expr size) {
  return both(pool, less(pool, pool.integer(-1), x), less(pool, x, size));
}

int64_t at(const NodeView& view, const char* attribute, size_t d, size_t count, int64_t fallback) {
  const auto values = view.small_integers(attribute, std::vector<int64_t>(count, fallback));
  if (values.size() != count) view.fail(fmt::format("{} must have {} entries", attribute, count));
  return values[d];
}

// Plane [batch, channel] of the image at a point, which is zero around it.
ir::Expr sample(LowerContext& context, ir::Expr batch, ir::Expr channel, ir::Expr y, ir::Expr x,
                DType wide) {
  ir::ExprPool& pool = context.pool();
  ir::Expr height = context.shape(0)[2], width = context.shape(0)[3];
  ir::Expr top = pool.make(ir::ExprOp::Floor, {y}), left = pool.make(ir::ExprOp::Floor, {x});
  ir::Expr down = pool.sub(y, top), right = pool.sub(x, left), one = pool.number(1, wide);
  const auto near = [&](ir::Expr point, ir::Expr size) {
    return both(pool, less(pool, pool.number(-1, wide), point),
                less(pool, point, pool.cast(wide, size)));
  };
  // Limits the integers below, which NaN and infinities have none of.
  ir::Expr inside = both(pool, near(y, height), near(x, width));
  const auto whole = [&](ir::Expr point) {
    return pool.cast(DType::Int64, pool.select(inside, point, pool.number(0, wide)));
  };
  ir::Expr row = whole(top), column = whole(left), sum = nullptr;
  for (int64_t i = 0; i < 4; ++i) {
    ir::Expr r = pool.add(row, pool.integer(i / 2)), c = pool.add(column, pool.integer(i % 2));
    ir::Expr here = both(pool, in_range(pool, r, height), in_range(pool, c, width));
    ir::Expr value = context.read(
        0, {batch, channel, clamp_index(pool, r, height), clamp_index(pool, c, width)});
    ir::Expr weight = pool.mul(i / 2 == 0 ? pool.sub(one, down) : down,
                               i % 2 == 0 ? pool.sub(one, right) : right);
    ir::Expr term =
        pool.select(here, pool.mul(weight, pool.cast(wide, value)), pool.number(0, wide));
    sum = sum == nullptr ? term : pool.add(sum, term);
  }
  return pool.select(inside, sum, pool.number(0, wide));
}

}  // namespace

// Along a dimension, element i of the image is tap t of place (i + pad - t·dilation) / stride.
ir::Expr element_of_col2im(LowerContext& context) {
  ir::ExprPool& pool = context.pool();
  const auto out = context.index();
  const size_t rank = out.size() - 2;
  const auto block = size_argument(static_cast<const NodeView&>(context), "", 2);
  const DType dtype = context.dtype(0), wide = computing_type(dtype);
  ir::Expr tap = pool.integer(0), taps = pool.integer(1), place = pool.integer(0), inside = nullptr;
  std::vector<ir::Expr> loops;
  for (size_t d = 0; d < rank; ++d) {
    const int64_t dilation = at(context, "dilations", d, rank, 1);
    const int64_t stride = at(context, "strides", d, rank, 1);
    const int64_t pad = at(context, "pads", d, 2 * rank, 0);
    const int64_t pads = pad + at(context, "pads", rank + d, 2 * rank, 0);
    ir::Expr size = (*block)[d];
    loops.push_back(context.loop_axis(static_cast<int>(d), size));
    ir::Expr extent = pool.add(pool.mul(pool.sub(size, pool.integer(1)), pool.integer(dilation)),
                               pool.integer(1));
    ir::Expr span = pool.sub(pool.add(context.result().shape[d + 2], pool.integer(pads)), extent);
    ir::Expr places = pool.add(pool.floordiv(span, pool.integer(stride)), pool.integer(1));
    ir::Expr first = pool.sub(pool.add(out[d + 2], pool.integer(pad)),
                              pool.mul(loops[d], pool.integer(dilation)));
    ir::Expr at_place = pool.floordiv(first, pool.integer(stride));
    ir::Expr hit = in_range(pool, at_place, places);
    if (stride != 1) {
      hit =
          both(pool, hit, equal(pool, pool.floormod(first, pool.integer(stride)), pool.integer(0)));
    }
    inside = inside == nullptr ? hit : both(pool, inside, hit);
    tap = pool.add(pool.mul(tap, size), loops[d]);
    taps = pool.mul(taps, size);
    place = pool.add(pool.mul(place, places), at_place);
  }
  ir::Expr row = pool.add(pool.mul(out[1], taps), tap);
  ir::Expr x = context.read(0, {out[0], row, clamp_index(pool, place, context.shape(0)[2])});
  ir::Expr sum = pool.select(inside, pool.cast(wide, x), pool.number(0, wide));
  for (size_t d = rank; d-- > 0;) sum = pool.reduce(ir::Reduction::Sum, loops[d], sum);
  return pool.cast(dtype, sum);
}

ir::Expr element_of_deform_conv(LowerContext& context) {
  ir::ExprPool& pool = context.pool();
  const auto out = context.index();
  const DType dtype = context.dtype(0), wide = computing_type(dtype);
  const auto& weights = context.shape(1);
  ir::Expr per_filter = pool.floordiv(weights[0], pool.integer(context.integer("group", 1)));
  ir::Expr per_offset =
      pool.floordiv(context.shape(0)[1], pool.integer(context.integer("offset_group", 1)));
  const std::vector<ir::Expr> loops = {context.loop_axis(0, weights[1]),
                                       context.loop_axis(1, weights[2]),
                                       context.loop_axis(2, weights[3])};
  ir::Expr channel = pool.add(pool.mul(pool.floordiv(out[1], per_filter), weights[1]), loops[0]);
  ir::Expr taps = pool.mul(weights[2], weights[3]);
  ir::Expr tap = pool.add(pool.mul(loops[1], weights[3]), loops[2]);
  ir::Expr number = pool.add(pool.mul(pool.floordiv(channel, per_offset), taps), tap);
  const auto point = [&](size_t d) {
    ir::Expr base =
        pool.add(pool.mul(out[d + 2], pool.integer(at(context, "strides", d, 2, 1))),
                 pool.mul(loops[d + 1], pool.integer(at(context, "dilations", d, 2, 1))));
    base = pool.sub(base, pool.integer(at(context, "pads", d, 4, 0)));
    ir::Expr row =
        pool.add(pool.mul(pool.integer(2), number), pool.integer(static_cast<int64_t>(d)));
    ir::Expr delta = context.read(2, {out[0], row, out[2], out[3]});
    return pool.add(pool.cast(wide, base), pool.cast(wide, delta));
  };
  ir::Expr term = sample(context, out[0], channel, point(0), point(1), wide);
  if (context.has_input(4)) {
    term = pool.mul(term, pool.cast(wide, context.read(4, {out[0], number, out[2], out[3]})));
  }
  ir::Expr weight = context.read(1, {out[1], loops[0], loops[1], loops[2]});
  ir::Expr sum = pool.mul(pool.cast(wide, weight), term);
  for (size_t d = loops.size(); d-- > 0;) sum = pool.reduce(ir::Reduction::Sum, loops[d], sum);
  if (context.has_input(3)) sum = pool.add(sum, pool.cast(wide, context.read(3, {out[1]})));
  return pool.cast(dtype, sum);
}

}  // namespace redfuser::ops
