#include "base/error.h"
#include "base/low_bit.h"
#include "ops/arguments.h"
#include "ops/elementwise/quantized.h"
#include "ops/families.h"
#include "ops/sizes.h"

namespace redfuser::ops {
namespace {

int quantised_axis(const NodeView& view) {
  return view.axis(view.integer("axis", 1), view.rank(0));
}

// Elements of the axis that share a parameter; 0: the parameters are not blocked.
int64_t block_of(const NodeView& view) {
  const int64_t block = view.integer("block_size", 0);
  if (block < 0) view.fail(fmt::format("a block of {}", block));
  return view.rank(1) > 1 || block > 0 ? block : 0;
}

// True for a parameter that all elements share.
bool is_shared(const NodeView& view, int input) {
  if (view.rank(input) == 0) return true;
  return view.rank(input) == 1 && view.shape(input)[0]->is_constant(1) &&
         view.integer("block_size", 0) == 0;
}

void check_parameters(InferContext& context) {
  if (context.has_input(2) && context.rank(1) + context.rank(2) == 1) {
    const int listed = context.rank(1) == 1 ? 1 : 2;
    if (!context.shape(listed)[0]->is_constant()) {
      context.fail_unknown(
          "whether scale and zero point are one for all is known only at run time");
    }
  }
  if (context.has_input(2) && !is_shared(context, 2) && context.rank(2) != context.rank(1)) {
    context.fail("scale and zero point differ in rank");
  }
  if (context.has_input(2) && !is_shared(context, 2)) {
    for (int d = 0; d < context.rank(2); ++d) {
      context.require_equal(context.shape(2)[d], context.shape(1)[d], "zero point and scale");
    }
  }
  if (is_shared(context, 1)) return;
  const int axis = quantised_axis(context);
  if (block_of(context) == 0) {
    if (context.rank(1) != 1) context.fail("a scale of several dimensions needs block_size");
    return context.require_equal(context.shape(1)[0], context.shape(0)[axis],
                                 "scale and quantised axis");
  }
  if (context.rank(1) != context.rank(0)) context.fail("blocked scales have the input's rank");
  for (int d = 0; d < context.rank(0); ++d) {
    ir::Expr size = context.shape(0)[d];
    if (d == axis) {
      size = ceil_div(context.pool(), size, context.pool().integer(block_of(context)));
    }
    context.require_equal(context.shape(1)[d], size, fmt::format("scale and dimension {}", d));
  }
}

// The scale or zero point of the element: one for all, per position of the axis, or per block.
ir::Expr parameter(LowerContext& context, int input) {
  ir::ExprPool& pool = context.pool();
  if (is_shared(context, input)) {
    return context.read(input, std::vector<ir::Expr>(context.shape(input).size(), pool.integer(0)));
  }
  const int axis = quantised_axis(context);
  const int64_t block = block_of(context);
  if (block == 0) return context.read(input, {context.index()[axis]});
  std::vector<ir::Expr> index(context.index().begin(), context.index().end());
  index[axis] = pool.floordiv(index[axis], pool.integer(block));
  return context.read(input, std::move(index));
}

// The type to divide in: the precision asked for, the scale's, or the input's.
DType dividing_type(const NodeView& view, DType x, DType scale) {
  if (view.integer("precision", 0) != 0) {
    return type_argument(view, "precision", DType::Undefined);
  }
  return is_float(scale) && is_float(x) && x == scale ? x : DType::Float32;
}

void infer_quantize(InferContext& context) {
  check_parameters(context);
  DType dtype = context.has_input(2) ? context.dtype(2) : DType::UInt8;
  if (context.integer("output_dtype", 0) != 0) {
    dtype = type_argument(context, "output_dtype", dtype);
  }
  check_quantized(context, dtype);
  check_scale(context, 1, true);
  if (!is_float(context.dtype(0)) && context.dtype(0) != DType::Int32) {
    context.fail("the input must be floating or int32");
  }
  context.set(0, dtype, context.shape(0));
}

// saturate(round(x / scale) + zero_point). The cast to a low-bit float rounds by itself, and its
// zero point is 0.
ir::Expr lower_quantize(LowerContext& context) {
  ir::ExprPool& pool = context.pool();
  const DType dtype = context.result().dtype;
  ir::Expr x = context.read_broadcast(0), scale = parameter(context, 1);
  const DType type = dividing_type(context, x->dtype, scale->dtype);
  ir::Expr value = pool.div(pool.cast(type, x), pool.cast(type, scale));
  if (!is_low_bit_float(dtype)) value = pool.make(ir::ExprOp::Round, {value});
  return quantized(context, pool.cast(DType::Float32, value),
                   context.has_input(2) ? parameter(context, 2) : nullptr, dtype);
}

void infer_dequantize(InferContext& context) {
  check_parameters(context);
  check_scale(context, 1, false);
  if (!is_integer(context.dtype(0)) && !is_low_bit_float(context.dtype(0))) {
    context.fail(fmt::format("dtype {} is not supported", name_of(context.dtype(0))));
  }
  DType dtype = context.dtype(1);
  if (context.integer("output_dtype", 0) != 0) {
    dtype = type_argument(context, "output_dtype", dtype);
  }
  if (!is_float(dtype)) context.fail("the result must be floating");
  context.set(0, dtype, context.shape(0));
}

// (x - zero_point) · scale, rounded once: 16 bits cannot represent every difference.
ir::Expr lower_dequantize(LowerContext& context) {
  ir::ExprPool& pool = context.pool();
  const DType dtype = context.result().dtype;
  const DType type = is_low_bit_float(context.dtype(0)) ? DType::Float32 : DType::Int32;
  ir::Expr x = pool.cast(type, context.read_broadcast(0));
  if (context.has_input(2)) x = pool.sub(x, pool.cast(type, parameter(context, 2)));
  const DType wide = computing_type(dtype);
  return pool.cast(dtype, pool.mul(pool.cast(wide, x), pool.cast(wide, parameter(context, 1))));
}

constexpr OpDef kOps[] = {
    {"QuantizeLinear", "", 10, infer_quantize, lower_quantize},
    {"DequantizeLinear", "", 10, infer_dequantize, lower_dequantize},
};

}  // namespace

std::span<const OpDef> quantization_ops() { return kOps; }

}  // namespace redfuser::ops
