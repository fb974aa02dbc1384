// Parts of the tables of elementwise operators: a shape rule per kind of operand, and lowerings
// from one scalar expression. Every operand broadcasts.
#pragma once

#include "ops/op_def.h"
#include "ops/sizes.h"

namespace redfuser::ops {

enum class Operand { Any, Number, Float, Integer, Boolean };

void check_operand(const NodeView& view, int input, Operand kind);
// Broadcasts inputs [first, input_count) and requires one dtype of them.
Shape broadcast_inputs(InferContext& context, int first, Operand kind);
void check_input_count(const NodeView& view, int low, int high);

inline constexpr int kVariadic = 1 << 20;

// Output of the operands' dtype.
template <Operand kind, int low, int high = low>
void infer_elementwise(InferContext& context) {
  check_input_count(context, low, high);
  context.set(0, context.dtype(0), broadcast_inputs(context, 0, kind));
}

// Bool output.
template <Operand kind, int low, int high = low>
void infer_predicate(InferContext& context) {
  check_input_count(context, low, high);
  context.set(0, DType::Bool, broadcast_inputs(context, 0, kind));
}

// `op` on tensor elements, which wrap around: sums, products and negations of int64 constants are
// folded here, modulo 2^64.
ir::Expr element_operation(ir::ExprPool& pool, ir::ExprOp op, std::vector<ir::Expr> args);

// `op` of one operand, or folded from the left over all.
template <ir::ExprOp op>
ir::Expr lower_op(LowerContext& context) {
  ir::Expr result = context.read_broadcast(0);
  if (context.input_count() == 1 && op != ir::ExprOp::Add && op != ir::ExprOp::Mul &&
      op != ir::ExprOp::Min && op != ir::ExprOp::Max) {
    return element_operation(context.pool(), op, {result});
  }
  for (int i = 1; i < context.input_count(); ++i) {
    result = element_operation(context.pool(), op, {result, context.read_broadcast(i)});
  }
  return result;
}

// f(pool, x) and f(pool, a, b).
template <auto f>
ir::Expr lower_unary(LowerContext& context) {
  return f(context.pool(), context.read_broadcast(0));
}
template <auto f>
ir::Expr lower_binary(LowerContext& context) {
  return f(context.pool(), context.read_broadcast(0), context.read_broadcast(1));
}

// Arithmetic on one element with numbers and attributes of its dtype.
class ScalarBuilder {
 public:
  ScalarBuilder(const LowerContext& context, DType dtype) : context_(context), dtype_(dtype) {}
  ir::Expr number(double value) const { return context_.pool().number(value, dtype_); }
  ir::Expr attribute(const char* name, double fallback) const {
    return number(context_.real(name, fallback));
  }
  ir::Expr op(ir::ExprOp op, ir::Expr a) const { return context_.pool().make(op, {a}); }
  ir::Expr op(ir::ExprOp op, ir::Expr a, ir::Expr b) const {
    return context_.pool().make(op, {a, b});
  }
  ir::Expr add(ir::Expr a, ir::Expr b) const { return op(ir::ExprOp::Add, a, b); }
  ir::Expr sub(ir::Expr a, ir::Expr b) const { return op(ir::ExprOp::Sub, a, b); }
  ir::Expr mul(ir::Expr a, ir::Expr b) const { return op(ir::ExprOp::Mul, a, b); }
  ir::Expr div(ir::Expr a, ir::Expr b) const { return op(ir::ExprOp::Div, a, b); }
  ir::Expr max(ir::Expr a, ir::Expr b) const { return op(ir::ExprOp::Max, a, b); }
  ir::Expr min(ir::Expr a, ir::Expr b) const { return op(ir::ExprOp::Min, a, b); }
  // a < b ? then : otherwise
  ir::Expr if_less(ir::Expr a, ir::Expr b, ir::Expr then, ir::Expr otherwise) const {
    return context_.pool().select(op(ir::ExprOp::Less, a, b), then, otherwise);
  }

 private:
  const LowerContext& context_;
  DType dtype_;
};

// f(scalar, x), with `scalar` for constants of x's dtype and attributes.
template <auto f>
ir::Expr lower_scalar(LowerContext& context) {
  ir::Expr x = context.read_broadcast(0);
  return f(ScalarBuilder(context, x->dtype), x);
}

}  // namespace redfuser::ops
