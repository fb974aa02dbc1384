// Products of quantized numbers: the integer product, scaled, rounded and saturated.
#include "reference/operators/quantized.h"

#include "base/error.h"
#include "ir/scalars/integers.h"
#include "ops/sizes.h"
#include "reference/operators/convolutions.h"

namespace redfuser::reference {
namespace {

// An element of a parameter that has one value for all, or one per `position` of an axis.
ir::Expr parameter(const ops::LowerContext& context, int input, ir::Expr position) {
  const auto& shape = context.shape(input);
  ir::ExprPool& pool = context.pool();
  if (ops::constant_count(shape) == 1) {
    return context.read(input, std::vector<ir::Expr>(shape.size(), pool.integer(0)));
  }
  if (shape.size() != 1) context.fail("parameters of several dimensions are not covered");
  return context.read(input, {position});
}

// Rounds half to even and saturates.
ir::Expr quantized(const ops::LowerContext& context, ir::Expr real, int zero_input) {
  ir::ExprPool& pool = context.pool();
  const DType dtype = context.result().dtype;
  if (!is_integer(dtype)) context.fail("the reference executor does not cover the result's type");
  ir::Expr zero = pool.integer(0);
  if (context.has_input(zero_input)) zero = parameter(context, zero_input, pool.integer(0));
  ir::Expr whole = pool.add(pool.make(ir::ExprOp::Round, {real}), pool.cast(DType::Float64, zero));
  const auto bound = [&](int64_t word) {
    return pool.number(ir::number_of_word(dtype, word), DType::Float64);
  };
  whole = pool.make(ir::ExprOp::Max, {whole, bound(ir::lowest_word(dtype))});
  whole = pool.make(ir::ExprOp::Min, {whole, bound(ir::highest_word(dtype))});
  return pool.cast(dtype, whole);
}

ir::Expr qlinear_conv(ops::LowerContext& context) {
  ir::ExprPool& pool = context.pool();
  ir::Expr sum = quantized_convolution(context);
  ir::Expr zero = pool.integer(0);
  ir::Expr scale = pool.mul(parameter(context, 1, zero), parameter(context, 4, context.index()[1]));
  ir::Expr real = pool.mul(pool.cast(DType::Float64, sum), scale);
  return quantized(context, pool.div(real, parameter(context, 6, zero)), 7);
}

}  // namespace

Lower quantized_expression(std::string_view op) {
  if (op == "QLinearConv") return qlinear_conv;
  return nullptr;
}

}  // namespace redfuser::reference
