#include "ops/image/box_elements.h"

#include <limits>

#include "ops/sizes.h"

namespace redfuser::ops {
namespace {

// Half away from zero.
ir::Expr rounded(ir::ExprPool& pool, ir::Expr x) {
  ir::Expr size = pool.make(
      ir::ExprOp::Floor, {pool.add(pool.make(ir::ExprOp::Abs, {x}), pool.number(0.5, x->dtype))});
  return pool.mul(pool.make(ir::ExprOp::Sign, {x}), size);
}

// The two elements around a point of a line and the weight of the second. A point beyond the last
// element takes the last element's value.
struct Split {
  ir::Expr low, high, part, near;  // near: at most one element outside
};
Split split(ir::ExprPool& pool, ir::Expr point, ir::Expr size) {
  const DType wide = point->dtype;
  ir::Expr zero = pool.number(0, wide), count = pool.cast(wide, size);
  Split result;
  result.near =
      pool.make(ir::ExprOp::And, {pool.make(ir::ExprOp::LessEqual, {pool.number(-1, wide), point}),
                                  pool.make(ir::ExprOp::LessEqual, {point, count})});
  ir::Expr at = pool.make(ir::ExprOp::Max, {pool.select(result.near, point, zero), zero});
  ir::Expr whole = pool.make(ir::ExprOp::Floor, {at});
  ir::Expr last = pool.make(ir::ExprOp::LessEqual, {pool.sub(count, pool.number(1, wide)), whole});
  result.part = pool.select(last, zero, pool.sub(at, whole));
  ir::Expr low = pool.cast(DType::Int64, whole);
  result.low = clamp_index(pool, low, size);
  result.high = clamp_index(pool, pool.add(low, pool.integer(1)), size);
  return result;
}

}  // namespace

ir::Expr element_of_roi_align(LowerContext& context) {
  ir::ExprPool& pool = context.pool();
  const auto out = context.index();
  const DType dtype = context.dtype(0), wide = computing_type(dtype);
  const int64_t ratio = context.integer("sampling_ratio", 0);
  if (ratio < 1) return nullptr;  // boxes decide the number of samples
  const bool maximum = context.text("mode", "avg") == "max";
  const std::string fallback = context.opset() < 16 ? "output_half_pixel" : "half_pixel";
  const bool half = context.text("coordinate_transformation_mode", fallback) == "half_pixel";
  const auto number = [&](double value) { return pool.number(value, wide); };
  const std::vector<ir::Expr> samples = {context.loop_axis(0, pool.integer(ratio)),
                                         context.loop_axis(1, pool.integer(ratio))};
  // Along a dimension of the image: corner `first` of the box to corner `first + 2`, in parts.
  const auto line = [&](int64_t first, size_t d) {
    const auto corner = [&](int64_t i) {
      ir::Expr x = pool.cast(wide, context.read(1, {out[0], pool.integer(i)}));
      return pool.sub(pool.mul(x, number(context.real("spatial_scale", 1))),
                      number(half ? 0.5 : 0));
    };
    ir::Expr begin = corner(first), size = pool.sub(corner(first + 2), begin);
    if (!half) size = pool.make(ir::ExprOp::Max, {size, number(1)});
    ir::Expr part = pool.div(size, pool.cast(wide, context.result().shape[d + 2]));
    ir::Expr within = pool.div(pool.add(pool.cast(wide, samples[d]), number(0.5)),
                               number(static_cast<double>(ratio)));
    ir::Expr at = pool.add(pool.cast(wide, out[d + 2]), within);
    return split(pool, pool.add(begin, pool.mul(at, part)), context.shape(0)[d + 2]);
  };
  const Split y = line(1, 0), x = line(0, 1);
  ir::Expr near = pool.make(ir::ExprOp::And, {y.near, x.near});
  ir::Expr image =
      clamp_index(pool, pool.cast(DType::Int64, context.read(2, {out[0]})), context.shape(0)[0]);
  ir::Expr body = nullptr;
  for (int i = 0; i < 4; ++i) {
    ir::Expr value =
        context.read(0, {image, out[1], i / 2 == 0 ? y.low : y.high, i % 2 == 0 ? x.low : x.high});
    ir::Expr weight = pool.mul(i / 2 == 0 ? pool.sub(number(1), y.part) : y.part,
                               i % 2 == 0 ? pool.sub(number(1), x.part) : x.part);
    ir::Expr some = pool.make(ir::ExprOp::And, {near, less(pool, number(0), weight)});
    ir::Expr term = pool.select(some, pool.mul(weight, pool.cast(wide, value)), number(0));
    body = body == nullptr ? term
                           : pool.make(maximum ? ir::ExprOp::Max : ir::ExprOp::Add, {body, term});
  }
  const ir::Reduction reduction = maximum ? ir::Reduction::Max : ir::Reduction::Sum;
  for (size_t d = samples.size(); d-- > 0;) body = pool.reduce(reduction, samples[d], body);
  if (!maximum) body = pool.div(body, number(static_cast<double>(ratio * ratio)));
  return pool.cast(dtype, body);
}

// Boxes [image, left, top, right, bottom] count whole elements, the last ones included.
ir::Expr element_of_max_roi_pool(LowerContext& context) {
  ir::ExprPool& pool = context.pool();
  const auto out = context.index();
  const DType dtype = context.dtype(0), wide = computing_type(dtype);
  const auto number = [&](double value) { return pool.number(value, wide); };
  const auto box = [&](int64_t i) {
    return pool.cast(wide, context.read(1, {out[0], pool.integer(i)}));
  };
  const auto edge = [&](int64_t i) {
    return rounded(pool, pool.mul(box(i), number(context.real("spatial_scale", 1))));
  };
  std::vector<ir::Expr> loops;
  ir::Expr inside = nullptr;
  for (size_t d = 0; d < 2; ++d) {
    const int64_t first = d == 0 ? 2 : 1;
    ir::Expr low = edge(first), size = pool.add(pool.sub(edge(first + 2), low), number(1));
    ir::Expr step = pool.div(pool.make(ir::ExprOp::Max, {size, number(1)}),
                             pool.cast(wide, context.result().shape[d + 2]));
    ir::Expr part = pool.cast(wide, out[d + 2]);
    ir::Expr begin = pool.add(low, pool.make(ir::ExprOp::Floor, {pool.mul(part, step)}));
    ir::Expr end =
        pool.add(low, pool.make(ir::ExprOp::Ceil, {pool.mul(pool.add(part, number(1)), step)}));
    loops.push_back(context.loop_axis(static_cast<int>(d), context.shape(0)[d + 2]));
    ir::Expr at = pool.cast(wide, loops[d]);
    ir::Expr here = pool.make(ir::ExprOp::And,
                              {pool.make(ir::ExprOp::LessEqual, {begin, at}), less(pool, at, end)});
    inside = inside == nullptr ? here : pool.make(ir::ExprOp::And, {inside, here});
  }
  const auto over = [&](ir::Reduction reduction, ir::Expr body) {
    return pool.reduce(reduction, loops[0], pool.reduce(reduction, loops[1], body));
  };
  ir::Expr image = clamp_index(pool, pool.cast(DType::Int64, box(0)), context.shape(0)[0]);
  ir::Expr value = pool.cast(wide, context.read(0, {image, out[1], loops[0], loops[1]}));
  ir::Expr lowest = number(-std::numeric_limits<double>::infinity());
  ir::Expr largest = over(ir::Reduction::Max, pool.select(inside, value, lowest));
  ir::Expr some = over(ir::Reduction::Sum, pool.select(inside, pool.integer(1), pool.integer(0)));
  ir::Expr result = pool.select(less(pool, pool.integer(0), some), largest, number(0));
  return pool.cast(dtype, result);
}

}  // namespace redfuser::ops
