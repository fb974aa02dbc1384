#include "cascade/certify/tape.h"

#include <algorithm>

#include "base/error.h"
#include "ir/evaluate.h"
#include "ir/scalars/reference.h"

namespace redfuser::cascade {

Tape::Tape(ir::Expr root) {
  slot_of(root);
  slots_.clear();
  values_.resize(operations_.size() * kWidth);
  for (size_t i = 0; i < operations_.size(); ++i) {
    ir::Expr expr = operations_[i].expr;
    if (!expr->is_constant()) continue;
    const double value = is_float(expr->dtype) ? expr->number : static_cast<double>(expr->integer);
    std::fill_n(values_.data() + i * kWidth, kWidth, value);
  }
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
  operations_.push_back({expr, arguments_.size(), reads_.size() - 1, false});
  arguments_.insert(arguments_.end(), slots.begin(), slots.end());
  const auto slot = static_cast<uint32_t>(operations_.size() - 1);
  slots_.emplace(expr, slot);
  return slot;
}

double Tape::run(const ir::Environment& environment) {
  const Points one{nullptr, 0, 1};
  set_axis(nullptr);
  run(environment, one, one.count, false);
  return values_[values_.size() - kWidth];
}

void Tape::run(const ir::Environment& environment, const AxisRange& range, double* results) {
  set_axis(range.axis);
  const auto width = std::min(kWidth, static_cast<size_t>(range.end - range.begin));
  for (int64_t begin = range.begin; begin < range.end; begin += kWidth) {
    const auto count = std::min(kWidth, static_cast<size_t>(range.end - begin));
    run(environment, {range.axis, begin, count}, width, begin > range.begin);
    results = std::copy_n(values_.end() - kWidth, count, results);
  }
}

void Tape::set_axis(ir::Expr axis) {
  if (axis == axis_) return;
  axis_ = axis;
  for (Operation& operation : operations_) {
    operation.varies = axis != nullptr && operation.expr->depends_on(axis);
  }
}

// `again`: what does not depend on the axis is known.
void Tape::run(const ir::Environment& environment, const Points& points, size_t width, bool again) {
  double* row = values_.data();
  for (const Operation& operation : operations_) {
    if (operation.varies) {
      compute(operation, environment, points, row);
    } else if (!again && !operation.expr->is_constant()) {
      compute(operation, environment, {nullptr, 0, 1}, row);
      std::fill(row + 1, row + width, *row);
    }
    row += kWidth;
  }
}

void Tape::read(const Operation& operation, const ir::Environment& environment, size_t count,
                double* results) {
  ConcreteRead& read = reads_[operation.read];
  for (size_t point = 0; point < count; ++point) {
    for (size_t i = 0; i < read.indices.size(); ++i) {
      read.indices[i].integer = ir::as_int(argument(operation, i)[point]);
    }
    results[point] = environment(&read.node);
  }
}

void Tape::compute(const Operation& operation, const ir::Environment& environment,
                   const Points& points, double* results) {
  ir::Expr expr = operation.expr;
  const size_t count = points.count;
  const auto arg = [&](size_t i) { return argument(operation, i); };
  switch (expr->op) {
    case ir::ExprOp::Axis:
      for (size_t i = 0; i < count; ++i) {
        results[i] = expr == points.axis
                         ? static_cast<double>(points.begin) + static_cast<double>(i)
                         : environment(expr);
      }
      return;
    case ir::ExprOp::Symbol:
    case ir::ExprOp::Leaf:
      *results = environment(expr);
      return;
    case ir::ExprOp::Reduce:
      for (size_t i = 0; i < count; ++i) {
        results[i] = evaluate(expr, [&](ir::Expr leaf) {
          return points.axis != nullptr && leaf == points.axis
                     ? static_cast<double>(points.begin) + static_cast<double>(i)
                     : environment(leaf);
        });
      }
      return;
    case ir::ExprOp::Read:
      read(operation, environment, count, results);
      return;
    case ir::ExprOp::Select:
      for (size_t i = 0; i < count; ++i) results[i] = arg(0)[i] != 0 ? arg(1)[i] : arg(2)[i];
      return;
    case ir::ExprOp::Cast:
      for (size_t i = 0; i < count; ++i) {
        results[i] = ir::cast_between(expr->dtype, expr->args[0]->dtype, arg(0)[i]);
      }
      return;
    default:
      break;
  }
  const DType dtype = expr->args[0]->dtype;
  if (expr->args.size() == 1) return unary(expr->op, dtype, arg(0), results, count);
  binary(expr->op, dtype, arg(0), arg(1), results, count);
  for (size_t i = 2; i < expr->args.size(); ++i) {
    binary(expr->op, dtype, results, arg(i), results, count);
  }
}

}  // namespace redfuser::cascade
