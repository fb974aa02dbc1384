#include "ops/elementwise.h"
#include "ops/families.h"

namespace redfuser::ops {
namespace {

using Scalar = ScalarBuilder;

ir::Expr sigmoid(const Scalar& s, ir::Expr x) {
  return s.div(s.number(1), s.add(s.number(1), s.op(ir::ExprOp::Exp, s.op(ir::ExprOp::Neg, x))));
}

ir::Expr relu(const Scalar& s, ir::Expr x) { return s.max(x, s.number(0)); }

ir::Expr leaky_relu(const Scalar& s, ir::Expr x) {
  return s.if_less(x, s.number(0), s.mul(s.attribute("alpha", 0.01), x), x);
}

// alpha·(exp(x) - 1)
ir::Expr exponential_tail(const Scalar& s, ir::Expr alpha, ir::Expr x) {
  return s.mul(alpha, s.sub(s.op(ir::ExprOp::Exp, x), s.number(1)));
}

ir::Expr elu(const Scalar& s, ir::Expr x) {
  return s.if_less(x, s.number(0), exponential_tail(s, s.attribute("alpha", 1.0), x), x);
}

ir::Expr selu(const Scalar& s, ir::Expr x) {
  ir::Expr tail = exponential_tail(s, s.attribute("alpha", 1.67326319217681884765625), x);
  return s.mul(s.attribute("gamma", 1.05070102214813232421875), s.if_less(s.number(0), x, x, tail));
}

// log(exp(x) + 1) = max(x, 0) + log(1 + exp(-|x|)), which does not overflow.
ir::Expr softplus(const Scalar& s, ir::Expr x) {
  ir::Expr tail = s.op(ir::ExprOp::Exp, s.op(ir::ExprOp::Neg, s.op(ir::ExprOp::Abs, x)));
  return s.add(s.max(x, s.number(0)), s.op(ir::ExprOp::Log, s.add(s.number(1), tail)));
}

ir::Expr softsign(const Scalar& s, ir::Expr x) {
  return s.div(x, s.add(s.number(1), s.op(ir::ExprOp::Abs, x)));
}

ir::Expr unit_clip(const Scalar& s, ir::Expr x) {
  return s.max(s.number(0), s.min(s.number(1), x));
}

ir::Expr hard_sigmoid(const Scalar& s, ir::Expr x) {
  return unit_clip(s, s.add(s.mul(s.attribute("alpha", 0.2), x), s.attribute("beta", 0.5)));
}

ir::Expr hard_swish(const Scalar& s, ir::Expr x) {
  return s.mul(x, unit_clip(s, s.add(s.mul(s.number(1.0f / 6), x), s.number(0.5))));
}

ir::Expr thresholded_relu(const Scalar& s, ir::Expr x) {
  return s.if_less(s.attribute("alpha", 1.0), x, x, s.number(0));
}

ir::Expr lower_prelu(LowerContext& context) {
  ir::Expr x = context.read_broadcast(0), slope = context.read_broadcast(1);
  const Scalar s(context, x->dtype);
  return s.if_less(x, s.number(0), s.mul(slope, x), x);
}

template <auto f>
constexpr OpDef activation(std::string_view name, int since) {
  return {name, "", since, infer_elementwise<Operand::Float, 1>, lower_scalar<f>};
}

constexpr OpDef kOps[] = {
    {"Relu", "", 1, infer_elementwise<Operand::Number, 1>, lower_scalar<relu>},
    {"PRelu", "", 7, infer_elementwise<Operand::Number, 2>, lower_prelu},
    activation<sigmoid>("Sigmoid", 1),
    activation<leaky_relu>("LeakyRelu", 1),
    activation<elu>("Elu", 1),
    activation<selu>("Selu", 1),
    activation<softplus>("Softplus", 1),
    activation<softsign>("Softsign", 1),
    activation<hard_sigmoid>("HardSigmoid", 1),
    activation<hard_swish>("HardSwish", 14),
    activation<thresholded_relu>("ThresholdedRelu", 10),
};

}  // namespace

std::span<const OpDef> activation_ops() { return kOps; }

}  // namespace redfuser::ops
