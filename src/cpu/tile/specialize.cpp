#include "cpu/tile/specialize.h"

#include <functional>
#include <map>
#include <set>
#include <unordered_set>

#include "base/error.h"
#include "cpu/growing/length_axis.h"
#include "ir/evaluate.h"

namespace redfuser::cpu {

ir::Expr Specializer::copy(ir::Expr expr) {
  auto found = memo_.find(expr);
  if (found != memo_.end()) return found->second;
  ir::Expr result = build(expr);
  memo_.emplace(expr, result);
  return result;
}

ir::Expr Specializer::build_axis(ir::Expr axis) {
  if (growing_ != nullptr && growing_->grows(axis->args[0])) {
    const ir::Expr extent = copy(axis->args[0]);
    return extent->is_constant(1) ? to_.integer(0) : to_.axis("a", extent);
  }
  const int64_t extent = evaluate_size(axis->args[0], symbols_);
  if (extent == 1) return to_.integer(0);
  return to_.axis("a", to_.integer(extent));
}

ir::Expr Specializer::build_symbol(ir::Expr symbol) {
  if (growing_ != nullptr) {
    const auto& offset = growing_->offsets[static_cast<size_t>(symbol->integer)];
    if (offset) return to_.add(length_symbol(to_), to_.integer(*offset));
  }
  return to_.integer(evaluate_size(symbol, symbols_));
}

ir::Expr Specializer::build(ir::Expr expr) {
  switch (expr->op) {
    case ir::ExprOp::Constant:
      return is_float(expr->dtype) ? to_.number(expr->number, expr->dtype)
                                   : to_.number_int(expr->integer, expr->dtype);
    case ir::ExprOp::Symbol:
      return build_symbol(expr);
    case ir::ExprOp::Axis:
      return build_axis(expr);
    case ir::ExprOp::Leaf:
      return to_.leaf(expr->leaf_kind, expr->integer, expr->dtype);
    default:
      break;
  }
  if (expr->op == ir::ExprOp::Reduce) {
    // A bound axis is shared by reductions of one nesting depth, so it always stays an axis here.
    ir::Expr axis = expr->args[0];
    auto found = memo_.find(axis);
    if (found == memo_.end()) {
      const int64_t extent = evaluate_size(axis->args[0], symbols_);
      found = memo_.emplace(axis, to_.axis("r", to_.integer(extent))).first;
    }
    ir::Expr bound = found->second;
    ir::Expr rank = expr->args.size() > 2 ? copy(expr->args[2]) : nullptr;
    return to_.reduce(expr->reduction, bound, copy(expr->args[1]), rank, expr->integer != 0);
  }
  std::vector<ir::Expr> args;
  for (ir::Expr arg : expr->args) args.push_back(copy(arg));
  if (expr->op == ir::ExprOp::Read) return to_.read(expr->integer, expr->dtype, std::move(args));
  if (expr->op == ir::ExprOp::Cast) return to_.cast(expr->dtype, args[0]);
  return to_.make(expr->op, std::move(args));
}

std::vector<ir::Expr> Specializer::copy_axes(std::span<const ir::Expr> axes) {
  std::vector<ir::Expr> result;
  for (ir::Expr axis : axes) {
    ir::Expr copied = copy(axis);
    if (copied->op == ir::ExprOp::Axis) result.push_back(copied);
  }
  return result;
}

std::vector<int64_t> symbols_of(const ir::Graph& graph, std::span<const ir::Expr> expressions,
                                std::span<const ir::ValueId> values) {
  std::set<int64_t> symbols;
  std::unordered_set<ir::Expr> seen;
  std::function<void(ir::Expr)> go = [&](ir::Expr expr) {
    if (!seen.insert(expr).second) return;
    if (expr->op == ir::ExprOp::Symbol) symbols.insert(expr->integer);
    for (ir::Expr arg : expr->args) go(arg);
    if (expr->op == ir::ExprOp::Read && expr->integer >= 0) {
      for (ir::Expr size : graph.values[static_cast<size_t>(expr->integer)].shape) go(size);
    }
  };
  for (ir::Expr expr : expressions) {
    if (expr) go(expr);
  }
  for (ir::ValueId value : values) {
    for (ir::Expr size : graph.values[static_cast<size_t>(value)].shape) go(size);
  }
  return {symbols.begin(), symbols.end()};
}

int64_t constant_of(ir::Expr expr) {
  RF_CHECK(expr->is_constant(), "a specialized size is no constant");
  return expr->integer;
}

int64_t extent_of(ir::Expr axis) { return constant_of(axis->args[0]); }

int64_t extent_of(std::span<const ir::Expr> axes) {
  int64_t extent = 1;
  for (ir::Expr axis : axes) extent *= extent_of(axis);
  return extent;
}

std::vector<int64_t> divisors_of(ir::Expr axis, const std::vector<ir::Expr*>& expressions) {
  std::set<int64_t> divisors;
  for (ir::Expr* expr : expressions) {
    visit(*expr, [&](ir::Expr node) {
      if (node->op != ir::ExprOp::FloorDiv && node->op != ir::ExprOp::FloorMod) return;
      if (!node->args[1]->is_constant() || node->args[1]->integer <= 1) return;
      ir::Expr inner = node->args[0];
      if (inner == axis) divisors.insert(node->args[1]->integer);
      if (inner->op == ir::ExprOp::FloorDiv && inner->args[0] == axis &&
          inner->args[1]->is_constant())
        divisors.insert(inner->args[1]->integer * node->args[1]->integer);
    });
  }
  const int64_t extent = extent_of(axis);
  int64_t previous = 1;
  std::vector<int64_t> chain;
  for (int64_t divisor : divisors) {
    if (divisor >= extent || divisor % previous != 0 || extent % divisor != 0) continue;
    chain.push_back(divisor);
    previous = divisor;
  }
  return chain;
}

void split_axes(ir::ExprPool& pool, std::vector<ir::Expr>& axes,
                const std::vector<ir::Expr*>& expressions) {
  std::vector<ir::Expr> result;
  for (ir::Expr axis : axes) {
    const std::vector<int64_t> divisors = divisors_of(axis, expressions);
    if (divisors.empty()) {
      result.push_back(axis);
      continue;
    }
    ir::Expr whole = pool.integer(0);
    int64_t outer = extent_of(axis);
    for (size_t i = divisors.size() + 1; i-- > 0;) {
      const int64_t inner = i > 0 ? divisors[i - 1] : 1;
      ir::Expr part = pool.axis("s", pool.integer(outer / inner));
      result.push_back(part);
      whole = pool.add(whole, pool.mul(part, pool.integer(inner)));
      outer = inner;
    }
    for (ir::Expr* expr : expressions) *expr = pool.substitute(*expr, {{axis, whole}});
  }
  axes = std::move(result);
}

}  // namespace redfuser::cpu
