#include "base/error.h"
#include "ops/families.h"
#include "ops/sizes.h"

namespace redfuser {
namespace {

struct Bounds {
  double low, high;
};

Bounds bounds_of(const NodeView& view, DType dtype) {
  switch (dtype) {
    case DType::UInt8:
      return {0, 255};
    case DType::Int8:
      return {-128, 127};
    case DType::UInt16:
      return {0, 65535};
    case DType::Int16:
      return {-32768, 32767};
    default:
      view.fail(fmt::format("quantised dtype {} is not supported", name_of(dtype)));
  }
}

void check_scale(const NodeView& view) {
  if (view.integer("block_size", 0) != 0) view.fail("block_size is not supported");
  if (view.rank(1) > 1) view.fail("a blocked scale is not supported");
}

void check_axis(InferContext& context) {
  check_scale(context);
  if (context.rank(1) == 0 || context.shape(1)[0]->is_constant(1)) return;
  const int axis = context.axis(context.integer("axis", 1), context.rank(0));
  context.require_equal(context.shape(1)[0], context.shape(0)[axis], "scale and quantised axis");
}

// The scale or zero point of the element: one for all, or one per position of the axis.
Expr parameter(LowerContext& context, int input) {
  if (context.rank(input) == 0) return context.read(input, {});
  if (context.shape(input)[0]->is_constant(1)) {
    return context.read(input, {context.pool().integer(0)});
  }
  const int axis = context.axis(context.integer("axis", 1), context.rank(0));
  return context.read(input, {context.index()[axis]});
}

void infer_quantize(InferContext& context) {
  check_axis(context);
  DType dtype = context.has_input(2) ? context.dtype(2) : DType::UInt8;
  if (const int64_t code = context.integer("output_dtype", 0); code != 0) {
    dtype = static_cast<DType>(code);
  }
  bounds_of(context, dtype);
  if (!is_float(context.dtype(0))) context.fail("the input must be floating");
  context.set(0, dtype, context.shape(0));
}

// saturate(round(x / scale) + zero_point)
Expr lower_quantize(LowerContext& context) {
  ExprPool& pool = context.pool();
  const DType dtype = context.result().dtype;
  const Bounds bounds = bounds_of(context, dtype);
  Expr x = context.read_broadcast(0), scale = pool.cast(x->dtype, parameter(context, 1));
  Expr value = pool.cast(DType::Float32, pool.make(ExprOp::Round, {pool.div(x, scale)}));
  if (context.has_input(2)) {
    value = pool.add(value, pool.cast(DType::Float32, parameter(context, 2)));
  }
  value = pool.make(ExprOp::Max, {value, pool.number(bounds.low, DType::Float32)});
  value = pool.make(ExprOp::Min, {value, pool.number(bounds.high, DType::Float32)});
  return pool.cast(dtype, value);
}

void infer_dequantize(InferContext& context) {
  check_axis(context);
  if (!is_integer(context.dtype(0))) {
    context.fail(fmt::format("dtype {} is not supported", name_of(context.dtype(0))));
  }
  DType dtype = context.dtype(1);
  if (const int64_t code = context.integer("output_dtype", 0); code != 0) {
    dtype = static_cast<DType>(code);
    if (!is_float(dtype)) context.fail("output_dtype is not supported");
  }
  context.set(0, dtype, context.shape(0));
}

// (x - zero_point) · scale
Expr lower_dequantize(LowerContext& context) {
  ExprPool& pool = context.pool();
  const DType dtype = context.result().dtype;
  Expr x = pool.cast(DType::Int32, context.read_broadcast(0));
  if (context.has_input(2)) x = pool.sub(x, pool.cast(DType::Int32, parameter(context, 2)));
  return pool.mul(pool.cast(dtype, x), pool.cast(dtype, parameter(context, 1)));
}

constexpr OpDef kOps[] = {
    {"QuantizeLinear", "", 10, infer_quantize, lower_quantize},
    {"DequantizeLinear", "", 10, infer_dequantize, lower_dequantize},
};

}  // namespace

std::span<const OpDef> quantization_ops() { return kOps; }

}  // namespace redfuser
