#include "cpu/cascade_trim.h"

#include <algorithm>
#include <cmath>

#include "cascade/magnitude.h"

namespace redfuser::cpu {

std::optional<bool> uniform_truth(Expr e, const AxisRanges& ranges) {
  auto truth = [&](size_t i) { return uniform_truth(e->args[i], ranges); };
  switch (e->op) {
    case ExprOp::Constant:
      return e->integer != 0;
    case ExprOp::Not: {
      auto a = truth(0);
      return a ? std::optional(!*a) : std::nullopt;
    }
    case ExprOp::And:
    case ExprOp::Or: {
      const bool decisive = e->op == ExprOp::Or;
      auto a = truth(0), b = truth(1);
      if ((a && *a == decisive) || (b && *b == decisive)) return decisive;
      return a && b ? std::optional(!decisive) : std::nullopt;
    }
    case ExprOp::Less:
    case ExprOp::LessEqual:
    case ExprOp::Equal: {
      if (!is_integer(e->args[0]->dtype) || e->has_read || e->has_leaf) return std::nullopt;
      const Range a = range_of(e->args[0], ranges), b = range_of(e->args[1], ranges);
      if (e->op == ExprOp::Equal) {
        if (a.high < b.low || b.high < a.low) return false;
        return a.low == a.high && b.low == b.high ? std::optional(true) : std::nullopt;
      }
      const bool strict = e->op == ExprOp::Less;
      if (strict ? a.high < b.low : a.high <= b.low) return true;
      if (strict ? a.low >= b.high : a.low > b.high) return false;
      return std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

namespace {

// The branch that a selection takes throughout the tile, or null.
Expr taken(Expr select, const AxisRanges& ranges) {
  auto truth = uniform_truth(select->args[0], ranges);
  return truth ? select->args[*truth ? 1 : 2] : nullptr;
}

bool positive(Expr e) { return e->is_constant() && is_float(e->dtype) && e->number > 0; }

// e = sign · infinity throughout the tile, or NaN.
bool is_infinite(Expr e, double sign, const AxisRanges& ranges) {
  auto arg = [&](size_t i, double s) { return is_infinite(e->args[i], s, ranges); };
  switch (e->op) {
    case ExprOp::Constant:
      return is_float(e->dtype) && std::isinf(e->number) && e->number * sign > 0;
    case ExprOp::Cast:
      return is_float(e->dtype) && is_float(e->args[0]->dtype) && arg(0, sign);
    case ExprOp::Neg:
      return arg(0, -sign);
    case ExprOp::Add:
      return arg(0, sign) || arg(1, sign);
    case ExprOp::Sub:
      return arg(0, sign);
    case ExprOp::Mul:
      return (positive(e->args[1]) && arg(0, sign)) || (positive(e->args[0]) && arg(1, sign));
    case ExprOp::Div:
      return positive(e->args[1]) && arg(0, sign);
    case ExprOp::Select: {
      Expr branch = taken(e, ranges);
      return branch ? is_infinite(branch, sign, ranges) : arg(1, sign) && arg(2, sign);
    }
    default:
      return false;
  }
}

bool is_zero(Expr e, const AxisRanges& ranges) {
  auto arg = [&](size_t i) { return is_zero(e->args[i], ranges); };
  switch (e->op) {
    case ExprOp::Constant:
      return e->is_constant(0);
    case ExprOp::Cast:
    case ExprOp::Neg:
    case ExprOp::Div:
      return arg(0);
    case ExprOp::Exp:
      return is_infinite(e->args[0], -1, ranges);
    case ExprOp::Mul:
      return arg(0) || arg(1);
    case ExprOp::Select: {
      Expr branch = taken(e, ranges);
      return branch ? is_zero(branch, ranges) : arg(1) && arg(2);
    }
    default:
      return false;
  }
}

}  // namespace

bool is_identity(Reduction reduction, Expr lift, const AxisRanges& ranges) {
  switch (reduction) {
    case Reduction::Sum:
      return is_zero(lift, ranges);
    case Reduction::Max:
      return is_infinite(lift, -1, ranges);
    case Reduction::Min:
      return is_infinite(lift, 1, ranges);
    default:
      return false;
  }
}

namespace {

// Holds a selection by indices, so that it may be 0 or infinite throughout a tile.
bool masked(Expr root) {
  bool found = false;
  visit(
      root,
      [&](Expr e) {
        if (e->op != ExprOp::Select) return;
        found |= !e->args[0]->free_axes.empty() && !e->args[0]->has_leaf;
      },
      false);
  return found;
}

bool masked_along(Expr root, Expr axis) {
  bool found = false;
  visit(
      root, [&](Expr e) { found |= e->op == ExprOp::Select && e->args[0]->depends_on(axis); },
      false);
  return found;
}

}  // namespace

void CascadeTrim::require_finite_reads(Expr root) {
  visit(root, [&](Expr e) {
    if (e->op != ExprOp::Read || e->integer < 0 || !is_float(e->dtype)) return;
    if (std::find(finite_.begin(), finite_.end(), e->integer) == finite_.end()) {
      finite_.push_back(e->integer);
    }
  });
}

void CascadeTrim::require_bound(ExprPool& pool, Expr e, bool above_only) {
  const auto number = [&](double value) { return pool.number(value, DType::Float64); };
  const KnownBound known = [&](Expr part) -> Expr {
    if (part->op == ExprOp::Leaf) return number(0);
    if (part->op == ExprOp::Read && is_float(part->dtype) && part->integer >= 0) {
      return pool.leaf(LeafKind::Result, part->integer, DType::Float64);
    }
    const bool infinite = part->is_constant() && is_float(part->dtype) && std::isinf(part->number);
    return infinite ? number(0) : nullptr;
  };
  constexpr double kLargeFloat = 0x1p127, kLargeDouble = 0x1p1023;
  bounds_.push_back({above_only ? upper_bound(pool, e, known) : magnitude(pool, e, known),
                     e->dtype == DType::Float64 ? kLargeDouble : kLargeFloat});
}

// inf + x, 0 · x and 0 / x are what they are for finite x alone, and 0 / x for no x of 0.
void CascadeTrim::require_finite(ExprPool& pool, Reduction reduction, Expr e) {
  const bool sum = e->op == ExprOp::Add || e->op == ExprOp::Sub;
  if (!is_float(e->dtype) || !(sum || e->op == ExprOp::Mul || e->op == ExprOp::Div)) return;
  for (size_t i = 0; i < (e->op == ExprOp::Div ? 1 : e->args.size()); ++i) {
    if (!masked(e->args[i])) continue;
    for (size_t other = 0; other < e->args.size(); ++other) {
      Expr x = e->args[other];
      if (other == i || !x->has_read) continue;
      require_finite_reads(x);
      const bool added = e->op == ExprOp::Add && reduction != Reduction::Min;
      if (sum) require_bound(pool, x, added);
      possible_ &= e->op != ExprOp::Div;
    }
  }
}

CascadeTrim::CascadeTrim(ExprPool& pool, Expr stream, std::vector<Fold> folds)
    : stream_(stream), folds_(std::move(folds)) {
  if (!stream_ || folds_.empty()) return;
  possible_ = true;
  for (const Fold& fold : folds_) {
    possible_ &= masked_along(fold.lift, stream_);
    visit(
        fold.lift, [&](Expr e) { require_finite(pool, fold.reduction, e); }, false);
  }
}

bool CascadeTrim::bounded(const std::vector<double>& largest) const {
  const auto of_leaf = [&](Expr leaf) {
    const auto at = std::find(finite_.begin(), finite_.end(), leaf->integer);
    return largest[static_cast<size_t>(at - finite_.begin())];
  };
  return std::all_of(bounds_.begin(), bounds_.end(), [&](const Bound& bound) {
    return evaluate(bound.magnitude, of_leaf) < bound.limit;
  });
}

bool CascadeTrim::empty(const AxisRanges& ranges, int64_t begin, int64_t end) const {
  const AxisRanges within = [&](Expr axis) {
    return axis == stream_ ? Range{begin, end - 1} : ranges(axis);
  };
  return std::all_of(folds_.begin(), folds_.end(), [&](const Fold& fold) {
    return is_identity(fold.reduction, fold.lift, within);
  });
}

// Emptiness of a whole end of the axis is monotone in its length: both ends are bisected.
CascadeTrim::Part CascadeTrim::part(const AxisRanges& ranges, int64_t granularity) const {
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
