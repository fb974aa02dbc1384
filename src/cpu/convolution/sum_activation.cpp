#include "cpu/convolution/sum_activation.h"

#include <cmath>

#include "cpu/steps/block_epilogue.h"

namespace redfuser::cpu {
namespace {

// The number that an operation has as one of its operands, and the other operand.
struct WithNumber {
  double number = 0;
  ir::Expr other = nullptr;  // null where none is a number
};
WithNumber with_number(ir::Expr e, ir::ExprOp op) {
  if (e->op != op) return {};
  const size_t at = e->args[0]->is_constant() ? 0 : 1;
  const ir::Expr constant = e->args[at];
  if (!constant->is_constant() || std::isnan(constant->number)) return {};
  return {constant->number, e->args[1 - at]};
}

// An affine function of `sum`, bounded by numbers: whichever bound comes first, where they are in
// order.
Activation bounded_affine(ir::Expr body, ir::Expr sum) {
  Activation a;
  for (int i = 0; i < 2; ++i) {
    const bool upper = body->op == ir::ExprOp::Min;
    const WithNumber bound = with_number(body, upper ? ir::ExprOp::Min : ir::ExprOp::Max);
    if (bound.other == nullptr) break;
    double& place = upper ? a.high : a.low;
    if (std::isfinite(place)) return {};
    place = bound.number;
    body = bound.other;
  }
  if (!(a.low <= a.high)) return {};
  for (const ir::ExprOp op : {ir::ExprOp::Add, ir::ExprOp::Mul}) {
    const WithNumber part = with_number(body, op);
    if (part.other == nullptr) continue;
    (op == ir::ExprOp::Add ? a.shift : a.scale) = part.number;
    a.affine = true;
    body = part.other;
  }
  a.any = body == sum;
  return a.any ? a : Activation{};
}

// 1 / (1 + e^-t) for the divisor 1 + e^-t of an affine t, in float32.
Activation logistic_of(ir::Expr divisor, ir::Expr sum) {
  const WithNumber one = with_number(divisor, ir::ExprOp::Add);
  if (one.other == nullptr || one.number != 1 || one.other->op != ir::ExprOp::Exp) return {};
  const ir::Expr exponent = one.other->args[0];
  const bool negated = exponent->op == ir::ExprOp::Neg;
  Activation a = bounded_affine(negated ? exponent->args[0] : exponent, sum);
  if (!a.any || divisor->dtype != DType::Float32) return {};
  if (std::isfinite(a.low) || std::isfinite(a.high)) return {};
  if (!negated) a.scale = -a.scale, a.shift = -a.shift;
  a.affine = a.logistic = true;
  return a;
}

Activation factor_of(ir::Expr body, ir::Expr sum) {
  if (body->op != ir::ExprOp::Div || !body->args[0]->is_constant(1)) {
    return bounded_affine(body, sum);
  }
  return logistic_of(body->args[1], sum);
}

Activation function_of(ir::Expr body, ir::Expr sum) {
  const Activation plain = factor_of(body, sum);
  if (plain.any) return plain;
  Activation gate;
  if (body->op == ir::ExprOp::Mul) {
    const size_t at = body->args[0] == sum ? 0 : 1;
    if (body->args[at] == sum) gate = factor_of(body->args[1 - at], sum);
  } else if (body->op == ir::ExprOp::Div && body->args[0] == sum) {
    gate = logistic_of(body->args[1], sum);
  }
  gate.affine = gate.gates = gate.any;
  return gate;
}

}  // namespace

SumActivation activation_of(ir::Expr body, const std::vector<ir::Expr>& indices,
                            const std::function<bool(ir::ValueId)>& has_layout) {
  SumActivation result;
  visit(body, [&](ir::Expr e) {
    if (result.each.any) return;
    if (is_product(e)) {
      result.each = function_of(body, e);
    } else if (e->op == ir::ExprOp::Add && is_product(e->args[0]) != is_product(e->args[1])) {
      const ir::Expr read = e->args[is_product(e->args[0]) ? 1 : 0];
      if (read->op != ir::ExprOp::Read || read->args != indices) return;
      const auto value = static_cast<ir::ValueId>(read->integer);
      if (!has_layout(value)) return;
      result.each = function_of(body, e);
      result.each.adds = result.each.any;
      if (result.each.any) result.residual = value;
    }
  });
  return result;
}

}  // namespace redfuser::cpu
