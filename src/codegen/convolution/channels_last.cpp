#include "codegen/convolution/channels_last.h"

#include "codegen/maps/map_select.h"

namespace redfuser::codegen {
namespace {

using Axes = std::vector<ir::Expr>;

// A value's element at each point of the axes, in their order, or zero where it does not exist.
int64_t copy_of(const ConvolutionStep& convolution, int64_t value, const Axes& axes,
                const Axes& point, ir::Expr exists, const char* comment) {
  StepBuilder& builder = convolution.builder;
  ir::ExprPool& pool = builder.pool();
  const DType dtype = convolution.dtype();
  ir::Expr body = pool.read(value, dtype, point);
  if (exists) body = pool.select(exists, body, pool.number(0, dtype));
  const Axes extents = extents_of(pool, axes);
  const int64_t scratch = builder.add_scratch(dtype, product_of(pool, extents));
  add_least_map(
      builder,
      {{axes, {{scratch, builder.flat.flat(body), row_major(pool, axes, extents)}}}, comment});
  return scratch;
}

// The axes of a copy with the channels last.
Axes last(const Axes& point) {
  Axes axes = {point[0]};
  axes.insert(axes.end(), point.begin() + 2, point.end());
  axes.push_back(point[1]);
  return axes;
}

// Makes the channel at `at`, which may be outside of `channels`, one that may be read. Returns
// whether it is inside, or null if every one is.
ir::Expr bound_channel(ir::ExprPool& pool, Axes& point, ir::Expr at, ir::Expr channels,
                       bool begins_before) {
  ir::Expr zero = pool.integer(0), end = pool.sub(channels, pool.integer(1));
  ir::Expr exists = pool.make(ir::ExprOp::LessEqual, {at, end});
  point[1] = pool.make(ir::ExprOp::Min, {at, end});
  if (!begins_before) return exists;
  point[1] = pool.make(ir::ExprOp::Max, {point[1], zero});
  return pool.make(ir::ExprOp::And, {pool.make(ir::ExprOp::LessEqual, {zero, at}), exists});
}

}  // namespace

int64_t copy_input(const ConvolutionStep& convolution, ir::Expr channels) {
  ir::ExprPool& pool = convolution.pool();
  const Axes& shape = convolution.builder.shape(convolution.input());
  Axes point = axes_of(pool, shape, "i");
  point[1] = pool.axis("c", channels);
  const Axes axes = last(point);
  ir::Expr exists = nullptr;
  if (shape[1] != channels) exists = bound_channel(pool, point, point[1], shape[1], false);
  return copy_of(convolution, convolution.input(), axes, point, exists,
                 "a convolution's input with its channels last\n");
}

int64_t copy_filters(const ConvolutionStep& convolution, ir::Expr channels, int64_t merged) {
  ir::ExprPool& pool = convolution.pool();
  const Axes& shape = convolution.builder.shape(convolution.weights());
  Axes point = axes_of(pool, shape, "i");
  point[1] = pool.axis("c", channels);
  const Axes axes = last(point);
  ir::Expr exists = nullptr;
  if (merged > 1) {
    ir::Expr filters = pool.floordiv(shape[0], pool.integer(convolution.groups()));
    ir::Expr group = pool.floormod(pool.floordiv(point[0], filters), pool.integer(merged));
    exists =
        bound_channel(pool, point, pool.sub(point[1], pool.mul(group, shape[1])), shape[1], true);
  } else if (shape[1] != channels) {
    exists = bound_channel(pool, point, point[1], shape[1], false);
  }
  return copy_of(convolution, convolution.weights(), axes, point, exists,
                 "a convolution's filters with their channels last\n");
}

int64_t copy_depthwise_filters(const ConvolutionStep& convolution) {
  ir::ExprPool& pool = convolution.pool();
  const Axes point = axes_of(pool, convolution.builder.shape(convolution.weights()), "i");
  Axes axes = tail(point);
  axes.push_back(point[0]);
  axes.push_back(point[1]);
  return copy_of(convolution, convolution.weights(), axes, point, nullptr,
                 "a convolution's filters with their channels last\n");
}

}  // namespace redfuser::codegen
