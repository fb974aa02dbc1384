#include "cascade/certify/tape.h"

#include "base/error.h"
#include "ir/evaluate.h"
#include "ir/scalars/reference.h"

namespace redfuser::cascade {

Tape::Tape(ir::Expr root) {
  slot_of(root);
  slots_.clear();
  values_.resize(operations_.size());
}

// Arguments precede their users, so the root is last.
uint32_t Tape::slot_of(ir::Expr expr) {
  if (const auto known = slots_.find(expr); known != slots_.end()) return known->second;
  std::vector<uint32_t> slots;
  // The extent of an axis is not an operand; a reduction is evaluated as a whole.
  if (expr->op != ir::ExprOp::Axis && expr->op != ir::ExprOp::Reduce) {
    for (ir::Expr arg : expr->args) slots.push_back(slot_of(arg));
  }
  if (expr->op == ir::ExprOp::Read) {
    ConcreteRead& read = reads_.emplace_back();
    read.node = ir::ExprNode{ir::ExprOp::Read, expr->dtype};
    read.node.integer = expr->integer;
    read.node.free_axes = expr->free_axes;
    read.indices.assign(slots.size(), ir::ExprNode{ir::ExprOp::Constant, DType::Int64});
    for (const ir::ExprNode& index : read.indices) read.node.args.push_back(&index);
  }
  operations_.push_back({expr, arguments_.size()});
  arguments_.insert(arguments_.end(), slots.begin(), slots.end());
  const auto slot = static_cast<uint32_t>(operations_.size() - 1);
  slots_.emplace(expr, slot);
  return slot;
}

double Tape::run(const ir::Environment& environment) {
  size_t next_read = 0;
  for (size_t i = 0; i < operations_.size(); ++i) {
    values_[i] = result(operations_[i], environment, next_read);
  }
  return values_.back();
}

double Tape::read(const Operation& operation, ConcreteRead& read,
                  const ir::Environment& environment) {
  for (size_t i = 0; i < read.indices.size(); ++i) {
    read.indices[i].integer = ir::as_int(argument(operation, i));
  }
  return environment(&read.node);
}

double Tape::result(const Operation& operation, const ir::Environment& environment,
                    size_t& next_read) {
  ir::Expr expr = operation.expr;
  auto arg = [&](size_t i) { return argument(operation, i); };
  switch (expr->op) {
    case ir::ExprOp::Constant:
      return is_float(expr->dtype) ? expr->number : static_cast<double>(expr->integer);
    case ir::ExprOp::Axis:
    case ir::ExprOp::Symbol:
    case ir::ExprOp::Leaf:
      return environment(expr);
    case ir::ExprOp::Reduce:
      return evaluate(expr, environment);
    case ir::ExprOp::Read:
      return read(operation, reads_[next_read++], environment);
    case ir::ExprOp::Select:
      return arg(0) != 0 ? arg(1) : arg(2);
    case ir::ExprOp::Cast:
      return ir::cast_between(expr->dtype, expr->args[0]->dtype, arg(0));
    default:
      break;
  }
  const DType dtype = expr->args[0]->dtype;
  if (expr->args.size() == 1) return unary(expr->op, dtype, arg(0));
  double value = arg(0);
  for (size_t i = 1; i < expr->args.size(); ++i) value = binary(expr->op, dtype, value, arg(i));
  return value;
}

}  // namespace redfuser::cascade
