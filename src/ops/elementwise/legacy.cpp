// Operators before opset 7: the second operand of an arithmetic or logical operator is broadcast
// only if the attribute `broadcast` is set, to the dimensions from `axis` on.
#include "base/error.h"
#include "ops/elementwise.h"
#include "ops/families.h"
#include "ops/sizes.h"

namespace redfuser::ops {
namespace {

// The dimension of the first operand that corresponds to the second operand's first dimension.
int first_dimension(const NodeView& view) {
  const int left = view.rank(0), right = view.rank(1);
  const int64_t axis = view.integer("axis", left - right);
  if (right > left || axis < 0 || axis > left - right) {
    view.fail(fmt::format("axis {} does not fit operands {} and {}", axis,
                          shape_text(view.pool(), view.shape(0)),
                          shape_text(view.pool(), view.shape(1))));
  }
  return static_cast<int>(axis);
}

template <Operand kind, bool predicate>
void infer_paired(InferContext& context) {
  check_input_count(context, 2, 2);
  check_operand(context, 0, kind);
  if (context.dtype(0) != context.dtype(1)) context.fail("the operands differ in dtype");
  const int first = first_dimension(context);
  const bool broadcast = context.integer("broadcast", 0) != 0;
  for (int d = 0; d < context.rank(1); ++d) {
    const ir::Expr size = context.shape(1)[d];
    if (broadcast && size->is_constant(1)) continue;
    context.require_equal(size, context.shape(0)[first + d], fmt::format("dimension {}", d));
  }
  context.set(0, predicate ? DType::Bool : context.dtype(0), context.shape(0));
}

ir::Expr second(LowerContext& context) {
  const int first = first_dimension(context);
  std::vector<ir::Expr> index;
  for (int d = 0; d < context.rank(1); ++d) {
    const bool one = context.shape(1)[d]->is_constant(1);
    index.push_back(one ? context.pool().integer(0) : context.index()[first + d]);
  }
  return context.read(1, std::move(index));
}

template <ir::ExprOp op, bool exchanged = false>
ir::Expr lower_paired(LowerContext& context) {
  ir::Expr a = context.read_broadcast(0), b = second(context);
  if (exchanged) std::swap(a, b);
  return context.pool().make(op, {a, b});
}

// One slope for all, or one per channel.
void infer_prelu(InferContext& context) {
  check_operand(context, 0, Operand::Float);
  if (context.dtype(0) != context.dtype(1)) context.fail("the slope differs in dtype");
  if (context.rank(1) > 1) context.fail("the slope must be a vector");
  const bool shared = context.rank(1) == 0 || context.shape(1)[0]->is_constant(1);
  if (!shared) {
    if (context.rank(0) < 2) context.fail("the input has no channels");
    context.require_equal(context.shape(1)[0], context.shape(0)[1], "slopes and channels");
  }
  context.set(0, context.dtype(0), context.shape(0));
}

ir::Expr lower_prelu(LowerContext& context) {
  ir::ExprPool& pool = context.pool();
  ir::Expr x = context.read_broadcast(0);
  std::vector<ir::Expr> index;
  if (context.rank(1) == 1) {
    const bool shared = context.shape(1)[0]->is_constant(1);
    index.push_back(shared ? pool.integer(0) : context.index()[1]);
  }
  ir::Expr negative = pool.make(ir::ExprOp::Less, {x, pool.number(0, x->dtype)});
  return pool.select(negative, pool.mul(x, context.read(1, std::move(index))), x);
}

constexpr Operand Number = Operand::Number, Boolean = Operand::Boolean;

constexpr OpDef kOps[] = {
    {"Add", "", 1, infer_paired<Number, false>, lower_paired<ir::ExprOp::Add>},
    {"Sub", "", 1, infer_paired<Number, false>, lower_paired<ir::ExprOp::Sub>},
    {"Mul", "", 1, infer_paired<Number, false>, lower_paired<ir::ExprOp::Mul>},
    {"Div", "", 1, infer_paired<Number, false>, lower_paired<ir::ExprOp::Div>},
    {"Pow", "", 1, infer_paired<Number, false>, lower_paired<ir::ExprOp::Pow>},
    {"And", "", 1, infer_paired<Boolean, false>, lower_paired<ir::ExprOp::And>},
    {"Or", "", 1, infer_paired<Boolean, false>, lower_paired<ir::ExprOp::Or>},
    {"Xor", "", 1, infer_paired<Boolean, false>, lower_paired<ir::ExprOp::Xor>},
    {"Equal", "", 1, infer_paired<Operand::Any, true>, lower_paired<ir::ExprOp::Equal>},
    {"Less", "", 1, infer_paired<Number, true>, lower_paired<ir::ExprOp::Less>},
    {"Greater", "", 1, infer_paired<Number, true>, lower_paired<ir::ExprOp::Less, true>},
    {"PRelu", "", 1, infer_prelu, lower_prelu},
};

}  // namespace

std::span<const OpDef> legacy_ops() { return kOps; }

}  // namespace redfuser::ops
