#include "base/error.h"
#include "ops/elementwise.h"
#include "ops/families.h"

namespace redfuser::ops {
namespace {

constexpr Operand Any = Operand::Any, Boolean = Operand::Boolean;

ir::Expr greater(ir::ExprPool& pool, ir::Expr a, ir::Expr b) {
  return pool.make(ir::ExprOp::Less, {b, a});
}
ir::Expr greater_equal(ir::ExprPool& pool, ir::Expr a, ir::Expr b) {
  return pool.make(ir::ExprOp::LessEqual, {b, a});
}

void infer_where(InferContext& context) {
  check_input_count(context, 3, 3);
  check_operand(context, 0, Boolean);
  Shape values = broadcast_inputs(context, 1, Any);
  context.set(0, context.dtype(1), context.broadcast(context.shape(0), values));
}

ir::Expr lower_where(LowerContext& context) {
  return context.pool().select(context.read_broadcast(0), context.read_broadcast(1),
                               context.read_broadcast(2));
}

ir::Expr lower_is_inf(LowerContext& context) {
  ir::ExprPool& pool = context.pool();
  ir::Expr x = context.read_broadcast(0), result = pool.boolean(false);
  if (context.integer("detect_positive", 1)) result = pool.make(ir::ExprOp::IsPosInf, {x});
  if (!context.integer("detect_negative", 1)) return result;
  return pool.make(ir::ExprOp::Or, {result, pool.make(ir::ExprOp::IsNegInf, {x})});
}

constexpr OpDef kOps[] = {
    {"And", "", 7, infer_predicate<Boolean, 2>, lower_op<ir::ExprOp::And>},
    {"Or", "", 7, infer_predicate<Boolean, 2>, lower_op<ir::ExprOp::Or>},
    {"Xor", "", 7, infer_predicate<Boolean, 2>, lower_op<ir::ExprOp::Xor>},
    {"Not", "", 1, infer_predicate<Boolean, 1>, lower_op<ir::ExprOp::Not>},
    {"Equal", "", 7, infer_predicate<Any, 2>, lower_op<ir::ExprOp::Equal>},
    {"Less", "", 7, infer_predicate<Any, 2>, lower_op<ir::ExprOp::Less>},
    {"Greater", "", 7, infer_predicate<Any, 2>, lower_binary<greater>},
    {"LessOrEqual", "", 12, infer_predicate<Any, 2>, lower_op<ir::ExprOp::LessEqual>},
    {"GreaterOrEqual", "", 12, infer_predicate<Any, 2>, lower_binary<greater_equal>},
    {"Where", "", 9, infer_where, lower_where},
    {"IsNaN", "", 9, infer_predicate<Operand::Float, 1>, lower_op<ir::ExprOp::IsNaN>},
    {"IsInf", "", 10, infer_predicate<Operand::Float, 1>, lower_is_inf},
};

}  // namespace

std::span<const OpDef> logic_ops() { return kOps; }

}  // namespace redfuser::ops
