#include "base/error.h"
#include "ops/arguments.h"
#include "ops/elementwise.h"
#include "ops/families.h"

namespace redfuser::ops {
namespace {

constexpr Operand Number = Operand::Number;

ir::Expr lower_max(LowerContext& context) {
  ir::Expr result = context.read_broadcast(0);
  for (int i = 1; i < context.input_count(); ++i) {
    result = max_of(context.pool(), result, context.read_broadcast(i));
  }
  return result;
}

ir::Expr lower_mean(LowerContext& context) {
  ir::Expr sum = lower_op<ir::ExprOp::Add>(context);
  return context.pool().div(sum, context.pool().number(context.input_count(), sum->dtype));
}

// A sum or product of int64 elements may wrap around. Division by one of its factors is exact for
// sizes only.
bool wraps_as_element(ir::Expr x) {
  return x->dtype == DType::Int64 && x->has_read &&
         (x->op == ir::ExprOp::Add || x->op == ir::ExprOp::Mul);
}

// The remainder with the divisor's sign, from the one with the dividend's.
ir::Expr floor_mod(ir::ExprPool& pool, ir::Expr a, ir::Expr b) {
  if (!wraps_as_element(a)) return pool.make(ir::ExprOp::FloorMod, {a, b});
  ir::Expr zero = pool.integer(0), rest = pool.make(ir::ExprOp::TruncMod, {a, b});
  auto negative = [&](ir::Expr x) { return pool.make(ir::ExprOp::Less, {x, zero}); };
  ir::Expr exact = pool.make(ir::ExprOp::Equal, {rest, zero});
  ir::Expr differ = pool.make(ir::ExprOp::Xor, {negative(rest), negative(b)});
  return pool.select(pool.make(ir::ExprOp::Or, {exact, pool.make(ir::ExprOp::Not, {differ})}), rest,
                     pool.add(rest, b));
}

ir::Expr lower_mod(LowerContext& context) {
  ir::Expr a = context.read_broadcast(0), b = context.read_broadcast(1);
  if (context.integer("fmod", 0) == 0) return floor_mod(context.pool(), a, b);
  return context.pool().make(ir::ExprOp::TruncMod, {a, b});
}

void infer_mod(InferContext& context) {
  infer_elementwise<Number, 2>(context);
  if (is_float(context.dtype(0)) && context.integer("fmod", 0) == 0) {
    context.fail("floating inputs need fmod=1");
  }
}

void infer_pow(InferContext& context) {
  check_input_count(context, 2, 2);
  check_operand(context, 0, Number);
  check_operand(context, 1, Number);
  context.set(0, context.dtype(0), context.broadcast(context.shape(0), context.shape(1)));
}

// x² and x³ as products: exact for the algebra and cheaper than a power.
ir::Expr lower_pow(LowerContext& context) {
  ir::ExprPool& pool = context.pool();
  ir::Expr base = context.read_broadcast(0), exponent = context.read_broadcast(1);
  const DType dtype = base->dtype;
  const auto times = [&](ir::Expr a, ir::Expr b) {
    return element_operation(pool, ir::ExprOp::Mul, {a, b});
  };
  if (exponent->is_constant(2)) return times(base, base);
  if (exponent->is_constant(3)) return times(times(base, base), base);
  if (!is_float(dtype) && is_float(exponent->dtype)) {
    return pool.cast(dtype,
                     pool.make(ir::ExprOp::Pow, {pool.cast(exponent->dtype, base), exponent}));
  }
  // The exponent is not wrapped, only the power is.
  return pool.make(ir::ExprOp::Pow,
                   {base, pool.cast(is_float(dtype) ? dtype : DType::Int64, exponent)});
}

void infer_clip(InferContext& context) {
  check_operand(context, 0, Number);
  context.set(0, context.dtype(0), context.shape(0));
}

ir::Expr lower_clip(LowerContext& context) {
  ir::ExprPool& pool = context.pool();
  ir::Expr x = context.read_broadcast(0);
  if (auto low = scalar_argument(context, "min", 1, x->dtype)) {
    x = max_of(pool, x, *low);
  }
  if (auto high = scalar_argument(context, "max", 2, x->dtype)) {
    x = pool.make(ir::ExprOp::Min, {x, *high});
  }
  return x;
}

ir::Expr lower_shift(LowerContext& context) {
  const std::string direction = context.text("direction", "");
  return context.pool().make(direction == "LEFT" ? ir::ExprOp::ShiftLeft : ir::ExprOp::ShiftRight,
                             {context.read_broadcast(0), context.read_broadcast(1)});
}

void infer_shift(InferContext& context) {
  infer_elementwise<Operand::Integer, 2>(context);
  const std::string direction = context.text("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") {
    context.fail(fmt::format("direction \"{}\" is neither LEFT nor RIGHT", direction));
  }
}

constexpr OpDef kOps[] = {
    {"Add", "", 7, infer_elementwise<Number, 2>, lower_op<ir::ExprOp::Add>},
    {"Sub", "", 7, infer_elementwise<Number, 2>, lower_op<ir::ExprOp::Sub>},
    {"Mul", "", 7, infer_elementwise<Number, 2>, lower_op<ir::ExprOp::Mul>},
    {"Div", "", 7, infer_elementwise<Number, 2>, lower_op<ir::ExprOp::Div>},
    {"Mod", "", 10, infer_mod, lower_mod},
    {"Pow", "", 7, infer_pow, lower_pow},
    {"Min", "", 1, infer_elementwise<Number, 1, kVariadic>, lower_op<ir::ExprOp::Min>},
    {"Max", "", 1, infer_elementwise<Number, 1, kVariadic>, lower_max},
    {"Sum", "", 1, infer_elementwise<Number, 1, kVariadic>, lower_op<ir::ExprOp::Add>},
    {"Mean", "", 1, infer_elementwise<Operand::Float, 1, kVariadic>, lower_mean},
    {"Clip", "", 1, infer_clip, lower_clip},
    {"BitShift", "", 11, infer_shift, lower_shift},
    {"BitwiseAnd", "", 18, infer_elementwise<Operand::Integer, 2>, lower_op<ir::ExprOp::BitAnd>},
    {"BitwiseOr", "", 18, infer_elementwise<Operand::Integer, 2>, lower_op<ir::ExprOp::BitOr>},
    {"BitwiseXor", "", 18, infer_elementwise<Operand::Integer, 2>, lower_op<ir::ExprOp::BitXor>},
    {"BitwiseNot", "", 18, infer_elementwise<Operand::Integer, 1>, lower_op<ir::ExprOp::BitNot>},
};

}  // namespace

std::span<const OpDef> arithmetic_ops() { return kOps; }

}  // namespace redfuser::ops
