#include "cpu/steps/cascade/cascade_trim.h"

#include <algorithm>
#include <cmath>

#include "cascade/visibility/hidden_elements.h"
#include "cpu/tile/specialize.h"
#include "ir/evaluate.h"

namespace redfuser::cpu {

std::optional<bool> uniform_truth(ir::Expr e, const AxisIntervals& ranges) {
  auto truth = [&](size_t i) { return uniform_truth(e->args[i], ranges); };
  switch (e->op) {
    case ir::ExprOp::Constant:
      return e->integer != 0;
    case ir::ExprOp::Not: {
      auto a = truth(0);
      return a ? std::optional(!*a) : std::nullopt;
    }
    case ir::ExprOp::And:
    case ir::ExprOp::Or: {
      const bool decisive = e->op == ir::ExprOp::Or;
      auto a = truth(0), b = truth(1);
      if ((a && *a == decisive) || (b && *b == decisive)) return decisive;
      return a && b ? std::optional(!decisive) : std::nullopt;
    }
    case ir::ExprOp::Less:
    case ir::ExprOp::LessEqual:
    case ir::ExprOp::Equal: {
      if (!is_integer(e->args[0]->dtype) || e->has_read || e->has_leaf) return std::nullopt;
      const Interval a = interval_of(e->args[0], ranges), b = interval_of(e->args[1], ranges);
      if (e->op == ir::ExprOp::Equal) {
        if (a.high < b.low || b.high < a.low) return false;
        return a.low == a.high && b.low == b.high ? std::optional(true) : std::nullopt;
      }
      const bool strict = e->op == ir::ExprOp::Less;
      if (strict ? a.high < b.low : a.high <= b.low) return true;
      if (strict ? a.low >= b.high : a.low > b.high) return false;
      return std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

CascadeTrim::CascadeTrim(ir::ExprPool& pool, ir::Expr stream, const std::vector<Fold>& folds)
    : stream_(stream) {
  if (!stream_ || folds.empty()) return;
  possible_ = true;
  for (const Fold& fold : folds) {
    bool masked = false;
    visit(
        fold.lift,
        [&](ir::Expr e) {
          masked |= e->op == ir::ExprOp::Select && e->args[0]->depends_on(stream_);
        },
        false);
    possible_ &= masked;
    add_masked_operands(pool, fold.reduction, fold.lift, operands_);
    hidden_.push_back(cascade::identity_condition(pool, fold.reduction, fold.lift));
  }
  possible_ &= operands_.decidable;
}

bool CascadeTrim::bounded(const std::vector<double>& largest) const {
  const std::vector<int64_t>& values = operands_.values;
  const auto of_leaf = [&](ir::Expr leaf) {
    const auto at = std::find(values.begin(), values.end(), leaf->integer);
    return largest[static_cast<size_t>(at - values.begin())];
  };
  return std::all_of(operands_.bounds.begin(), operands_.bounds.end(), [&](const auto& bound) {
    return evaluate(bound.magnitude, of_leaf) < bound.limit;
  });
}

bool CascadeTrim::empty(const AxisIntervals& ranges, int64_t begin, int64_t end) const {
  const AxisIntervals within = [&](ir::Expr axis) {
    return axis == stream_ ? Interval{begin, end - 1} : ranges(axis);
  };
  return std::all_of(hidden_.begin(), hidden_.end(),
                     [&](ir::Expr condition) { return uniform_truth(condition, within) == true; });
}

// Emptiness of a whole end of the axis is monotone in its length: both ends are bisected.
CascadeTrim::Part CascadeTrim::part(const AxisIntervals& ranges, int64_t granularity) const {
  const int64_t extent = stream_ ? extent_of(stream_) : 1;
  Part whole{0, extent};
  if (!possible_ || extent == 0) return whole;
  const int64_t blocks = (extent + granularity - 1) / granularity;
  int64_t low = 0, high = blocks;  // the smallest h with [h, blocks) empty
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (empty(ranges, middle * granularity, extent)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  whole.end = std::min(high * granularity, extent);
  int64_t first = 0, last = high;  // the largest b with [0, b) empty
  while (first < last) {
    const int64_t middle = (first + last + 1) / 2;
    if (empty(ranges, 0, std::min(middle * granularity, extent))) {
      first = middle;
    } else {
      last = middle - 1;
    }
  }
  whole.begin = std::min(first * granularity, whole.end);
  return whole;
}

}  // namespace redfuser::cpu
