#include "codegen/attention/mask_condition.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "base/half.h"
#include "cascade/visibility/magnitude.h"
#include "ir/polynomial.h"
#include "ir/ranges.h"

namespace redfuser::codegen {
namespace {

constexpr double kHighestFill = -1e4;     // constants up to this may be a mask's fill
constexpr double kLargestWide = 0x1p100;  // see the header
constexpr double kLargestHalf = 65504;
constexpr double kLargestHalfScore = 0x1p14;

// The condition of an Expr of dtype Bool, in And, Or, Not and comparisons.
ir::Expr truth(ir::ExprPool& pool, ir::Expr e) {
  auto both = [&](ir::Expr a, ir::Expr b) { return pool.make(ir::ExprOp::And, {a, b}); };
  auto negation = [&](ir::Expr a) { return pool.make(ir::ExprOp::Not, {a}); };
  switch (e->op) {
    case ir::ExprOp::Not:
      return negation(truth(pool, e->args[0]));
    case ir::ExprOp::And:
    case ir::ExprOp::Or:
      return pool.make(e->op, {truth(pool, e->args[0]), truth(pool, e->args[1])});
    case ir::ExprOp::Select: {
      ir::Expr c = truth(pool, e->args[0]);
      return pool.make(ir::ExprOp::Or, {both(c, truth(pool, e->args[1])),
                                        both(negation(c), truth(pool, e->args[2]))});
    }
    case ir::ExprOp::Cast: {
      ir::Expr x = e->args[0];
      if (x->op == ir::ExprOp::Select && x->args[1]->is_constant() && x->args[2]->is_constant()) {
        return truth(pool, pool.select(x->args[0], pool.cast(DType::Bool, x->args[1]),
                                       pool.cast(DType::Bool, x->args[2])));
      }
      if (x->op == ir::ExprOp::Cast && x->args[0]->dtype == DType::Bool) {
        return truth(pool, x->args[0]);
      }
      return x->dtype == DType::Bool ? truth(pool, x) : e;
    }
    default:
      return e;
  }
}

// Where `when` holds, the expression is at most `value`, an expression of leaves and constants.
struct Low {
  ir::Expr when, value;
};
// Where `when` and `settled` hold, a lift is the identity.
struct Hidden {
  ir::Expr when, settled;
};

class Masks {
 public:
  Masks(ir::ExprPool& pool, const AttentionSpec& form) : pool_(pool), form_(form) {}

  MaskCondition run() {
    MaskCondition none{pool_.boolean(true), pool_.boolean(true)};
    if (uses_count()) return none;
    Hidden all{pool_.boolean(true), pool_.boolean(true)};
    for (size_t k = 0; k < form_.rows.accumulators.size(); ++k) {
      auto hidden = of_accumulator(k);
      if (!hidden) return none;
      all = {both(all.when, hidden->when), both(all.settled, hidden->settled)};
    }
    if (all.when->is_constant()) return none;
    MaskCondition result{negation(all.when), all.settled};
    const bool finite_fills = !all.settled->is_constant();
    if (always_settled(result)) result.settled = pool_.boolean(true);
    if (form_.visits_hidden) result.settled = pool_.boolean(false);
    if (finite_fills) {
      result.largest_score = takes_half_scores_ ? kLargestHalfScore : kLargestWide;
    }
    return result;
  }

 private:
  ir::Expr both(ir::Expr a, ir::Expr b) { return pool_.make(ir::ExprOp::And, {a, b}); }
  ir::Expr either(ir::Expr a, ir::Expr b) { return pool_.make(ir::ExprOp::Or, {a, b}); }
  ir::Expr negation(ir::Expr a) {
    return a->is_constant() ? pool_.boolean(a->integer == 0) : pool_.make(ir::ExprOp::Not, {a});
  }
  static bool minus_infinity(ir::Expr e) { return e->is_constant() && e->number == -HUGE_VAL; }

  bool uses_count() const {
    bool found = false;
    auto look = [&](ir::Expr root) {
      if (!root) return;
      visit(root, [&](ir::Expr e) {
        found |= e->op == ir::ExprOp::Leaf && e->leaf_kind == ir::LeafKind::Count;
      });
    };
    for (const cascade::Accumulator& a : form_.rows.accumulators) {
      look(a.lift);
      look(a.transport);
    }
    for (const cascade::Reference& reference : form_.rows.references) look(reference.value);
    for (ir::Expr e : form_.rows.finish) look(e);
    return found;
  }

  std::optional<Hidden> of_accumulator(size_t k) {
    const cascade::Accumulator& a = form_.rows.accumulators[k];
    if (a.reduction == ir::Reduction::Sum) return zero(form_.lift_of(k));
    if (a.reduction != ir::Reduction::Max) return std::nullopt;
    auto found = low(a.lift);
    if (!found) return std::nullopt;
    if (minus_infinity(found->value)) return Hidden{found->when, pool_.boolean(true)};
    ir::Expr state = pool_.leaf(ir::LeafKind::State, static_cast<int64_t>(k), a.dtype);
    ir::Expr value = pool_.cast(a.dtype, found->value);
    return Hidden{found->when, pool_.make(ir::ExprOp::LessEqual, {value, state})};
  }

  // Known from indices and reads, before the scores.
  bool index_only(ir::Expr e) const {
    if (e->has_leaf) return false;
    bool scored = false;
    visit(e, [&](ir::Expr x) { scored |= x->op == ir::ExprOp::Reduce; });
    return !scored;
  }

  // A running maximum, or 0 while it is -inf.
  static bool is_shift(ir::Expr e) {
    if (e->op == ir::ExprOp::Leaf) return e->leaf_kind == ir::LeafKind::NewResult;
    return guarded(e);
  }
  static bool guarded(ir::Expr e) {
    if (e->op != ir::ExprOp::Select || !e->args[1]->is_constant(0)) return false;
    ir::Expr condition = e->args[0], shift = e->args[2];
    if (shift->op != ir::ExprOp::Leaf) return false;
    const auto tests = [&](ir::Expr test, ir::ExprOp op) {
      return test->op == op && test->args[0] == shift;
    };
    if (condition->op != ir::ExprOp::Or) return tests(condition, ir::ExprOp::IsNegInf);
    ir::Expr a = condition->args[0], b = condition->args[1];
    if (a->op == ir::ExprOp::IsPosInf) std::swap(a, b);
    return tests(a, ir::ExprOp::IsNegInf) && tests(b, ir::ExprOp::IsPosInf);
  }
  // Never -inf, so -inf - e is -inf.
  static bool above_minus_infinity(ir::Expr e) {
    if (e->is_constant()) return std::isfinite(e->number);
    return guarded(e) || (!e->has_leaf && is_float(e->dtype) && e->op != ir::ExprOp::Select);
  }

  // Rounding is monotone and keeps bounds.
  ir::Expr converted(DType dtype, ir::Expr value) {
    if (!value->is_constant() || dtype == DType::Float64) return pool_.cast(dtype, value);
    double number = value->number;
    if (dtype == DType::Float16) number = static_cast<float>(Half(number));
    if (dtype == DType::BFloat16) number = static_cast<float>(BFloat16(number));
    return pool_.number(number, dtype);
  }

  std::optional<Low> low(ir::Expr e) {
    switch (e->op) {
      case ir::ExprOp::Constant:
        if (!is_float(e->dtype) || !(e->number <= kHighestFill)) return std::nullopt;
        mildest_ = std::max(mildest_, e->number);
        return Low{pool_.boolean(true), e};
      case ir::ExprOp::Cast: {
        auto inner = is_float(e->args[0]->dtype) ? low(e->args[0]) : std::nullopt;
        if (inner) inner->value = converted(e->dtype, inner->value);
        return inner;
      }
      case ir::ExprOp::Select:
        return low_select(e);
      case ir::ExprOp::Add:
        return low_sum(e->args[0], e->args[1]);
      case ir::ExprOp::Sub:
        return low_difference(e);
      case ir::ExprOp::Mul:
      case ir::ExprOp::Div: {
        ir::Expr factor = e->args[1];
        if (!factor->is_constant() || !(factor->number > 0)) return std::nullopt;
        auto inner = low(e->args[0]);
        if (inner) inner->value = pool_.make(e->op, {inner->value, factor});
        return inner;
      }
      default:
        return std::nullopt;
    }
  }

  // A condition that implies `a` where the selection is of the first branch, and `b` elsewhere.
  ir::Expr chosen(ir::Expr condition, ir::Expr a, ir::Expr b) {
    if (a == b || !index_only(condition)) return both(a, b);
    if (b->is_constant(1)) return either(a, negation(condition));
    if (a->is_constant(1)) return either(condition, b);
    return either(both(condition, a), both(negation(condition), b));
  }

  std::optional<Low> low_select(ir::Expr e) {
    auto a = low(e->args[1]), b = low(e->args[2]);
    if (!a && !b) return std::nullopt;
    ir::Expr condition = truth(pool_, e->args[0]);
    if (a && b) {
      ir::Expr value =
          a->value == b->value ? a->value : pool_.make(ir::ExprOp::Max, {a->value, b->value});
      return Low{chosen(condition, a->when, b->when), value};
    }
    if (!index_only(condition)) return std::nullopt;
    if (a) return Low{both(condition, a->when), a->value};
    return Low{both(negation(condition), b->when), b->value};
  }

  std::optional<Low> low_sum(ir::Expr x, ir::Expr y) {
    auto a = low(x), b = low(y);
    if (a && b && minus_infinity(a->value) && minus_infinity(b->value)) {
      return Low{either(a->when, b->when), a->value};
    }
    if (!a || (b && minus_infinity(b->value))) {
      std::swap(a, b);
      std::swap(x, y);
    }
    if (!a || minus_infinity(a->value)) return a;
    if (!a->value->is_constant()) return std::nullopt;
    const double bound = a->value->number + score_magnitude(y, a->value->number);
    if (!(bound <= kHighestFill)) return std::nullopt;
    return Low{a->when, pool_.number(bound, x->dtype)};
  }

  std::optional<Low> low_difference(ir::Expr e) {
    auto a = low(e->args[0]);
    if (!a) return std::nullopt;
    ir::Expr b = e->args[1];
    if (minus_infinity(a->value)) {
      return above_minus_infinity(b) ? a : std::nullopt;
    }
    if (!is_shift(b)) return std::nullopt;
    return Low{a->when, pool_.sub(a->value, b)};
  }

  std::optional<Hidden> zero(ir::Expr e) {
    ir::Expr yes = pool_.boolean(true);
    switch (e->op) {
      case ir::ExprOp::Constant:
        if (!e->is_constant(0)) return std::nullopt;
        return Hidden{yes, yes};
      case ir::ExprOp::Exp: {
        auto x = low(e->args[0]);
        if (!x) return std::nullopt;
        if (minus_infinity(x->value)) return Hidden{x->when, yes};
        ir::Expr value = pool_.make(ir::ExprOp::Exp, {x->value});
        return Hidden{x->when,
                      pool_.make(ir::ExprOp::Equal, {value, pool_.number(0, value->dtype)})};
      }
      case ir::ExprOp::Cast: {
        ir::Expr x = e->args[0];
        if (x->dtype != DType::Bool) return is_float(x->dtype) ? zero(x) : std::nullopt;
        ir::Expr condition = truth(pool_, x);
        if (!index_only(condition)) return std::nullopt;
        return Hidden{negation(condition), yes};
      }
      case ir::ExprOp::Neg:
      case ir::ExprOp::Abs:
      case ir::ExprOp::Sqrt:
        return zero(e->args[0]);
      case ir::ExprOp::Mul: {
        auto a = zero(e->args[0]), b = zero(e->args[1]);
        if (a && b && a->settled == yes && b->settled == yes) {
          return Hidden{either(a->when, b->when), yes};
        }
        return a ? a : b;
      }
      case ir::ExprOp::Div: {
        auto found = zero(e->args[0]);
        return found ? found : zero_by_divisor(e->args[1]);
      }
      case ir::ExprOp::Reciprocal:
        return zero_by_divisor(e->args[0]);
      case ir::ExprOp::Select:
        return zero_select(e);
      default:
        return std::nullopt;
    }
  }

  std::optional<Hidden> zero_by_divisor(ir::Expr e) {
    ir::Expr when = infinite(e);
    if (!when) return std::nullopt;
    return Hidden{when, pool_.boolean(true)};
  }

  std::optional<Hidden> zero_select(ir::Expr e) {
    auto a = zero(e->args[1]), b = zero(e->args[2]);
    if (!a && !b) return std::nullopt;
    ir::Expr condition = truth(pool_, e->args[0]);
    if (a && b) {
      return Hidden{chosen(condition, a->when, b->when), both(a->settled, b->settled)};
    }
    if (!index_only(condition)) return std::nullopt;
    if (a) return Hidden{both(condition, a->when), a->settled};
    return Hidden{both(negation(condition), b->when), b->settled};
  }

  // Where e is known to be +inf; null if nowhere.
  ir::Expr infinite(ir::Expr e) {
    if (e->op == ir::ExprOp::Exp || (e->op == ir::ExprOp::Cast && is_float(e->args[0]->dtype))) {
      return infinite(e->args[0]);
    }
    if (e->op == ir::ExprOp::Add) {
      ir::Expr a = infinite(e->args[0]), b = infinite(e->args[1]);
      return a && b ? either(a, b) : a ? a : b;
    }
    if (e->op != ir::ExprOp::Neg) return nullptr;
    auto x = low(e->args[0]);
    return x && minus_infinity(x->value) ? x->when : nullptr;
  }

  // A bound of |e| for finite operands; +inf if none is known.
  double magnitude(ir::Expr e) {
    const auto known = [&](ir::Expr part) -> ir::Expr {
      if (part == form_.contraction) return bound(contraction_magnitude());
      if (part->op != ir::ExprOp::Read || !is_float(part->dtype)) return nullptr;
      return bound(part->dtype == DType::Float16 ? kLargestHalf : kLargestWide);
    };
    ir::Expr result = redfuser::cascade::magnitude(pool_, e, known);
    return result->is_constant() ? result->number : HUGE_VAL;
  }
  ir::Expr bound(double value) { return pool_.number(value, DType::Float64); }

  // The same for operands combined with a fill.
  double score_magnitude(ir::Expr e, double fill) {
    const double bound = magnitude(e);
    const bool half = form_.contraction->dtype == DType::Float16 && fill <= -kLargestHalf;
    takes_half_scores_ |= half;
    return half ? std::min(bound, kLargestHalfScore) : bound;
  }

  double contraction_magnitude() {
    for (ir::Expr operand : {form_.query, form_.key}) {
      if (operand->dtype != DType::Float16) return kLargestWide;
    }
    const double product = kLargestHalf * kLargestHalf;
    const double sum = product * static_cast<double>(form_.depth->extent()->integer);
    return form_.scale ? sum * magnitude(form_.scale) : sum;
  }

  // Whether every row has a visible key whose score settles the row.
  bool always_settled(const MaskCondition& mask) {
    if (mask.settled->is_constant()) return mask.settled->integer != 0;
    if (!every_row_sees(mask.visible)) return false;
    // The least maximum once a visible key is folded.
    std::vector<std::pair<ir::Expr, ir::Expr>> least;
    const auto& list = form_.rows.accumulators;
    for (size_t k = 0; k < list.size(); ++k) {
      if (list[k].reduction != ir::Reduction::Max) continue;
      ir::Expr lift = where_visible(pool_, mask.visible, list[k].lift);
      ir::Expr bound = pool_.number(-score_magnitude(lift, mildest_), list[k].dtype);
      ir::Expr state = pool_.leaf(ir::LeafKind::State, static_cast<int64_t>(k), list[k].dtype);
      least.emplace_back(state, bound);
      for (size_t r = 0; r < form_.rows.references.size(); ++r) {
        if (form_.rows.references[r].value != state) continue;
        least.emplace_back(
            pool_.leaf(ir::LeafKind::NewResult, static_cast<int64_t>(r), state->dtype), bound);
      }
    }
    ir::Expr settled = pool_.substitute(mask.settled, least);
    return settled->is_constant() && settled->integer != 0;
  }

  bool every_row_sees(ir::Expr visible) {
    ir::Expr key = form_.rows.cascade.stream;
    std::vector<ir::Expr> keys = {pool_.integer(0)};
    if (form_.row) keys.push_back(form_.row);
    // Where ±key + base is 0 or 1.
    const auto take_root = [&](ir::Expr difference, bool or_one) {
      auto affine = affine_in(pool_, difference, key);
      if (!affine || !affine->stride->is_constant()) return;
      const int64_t stride = affine->stride->integer;
      if (stride != 1 && stride != -1) return;
      ir::Expr at = pool_.mul(affine->base, pool_.integer(-stride));
      keys.push_back(at);
      if (or_one) keys.push_back(pool_.add(at, pool_.integer(stride)));
    };
    visit(visible, [&](ir::Expr e) {
      const bool compares = e->op == ir::ExprOp::Less || e->op == ir::ExprOp::LessEqual;
      if (e->op == ir::ExprOp::Abs && e->dtype == DType::Int64) take_root(e->args[0], false);
      if (!compares || e->args[0]->dtype != DType::Int64) return;
      take_root(pool_.sub(e->args[1], e->args[0]), e->op == ir::ExprOp::Less);
    });
    return std::any_of(keys.begin(), keys.end(), [&](ir::Expr at) {
      if (!proved_nonnegative(at, ir::kWhereElementsExist) ||
          !proved_less(pool_, at, key->extent(), ir::kWhereElementsExist))
        return false;
      ir::Expr there = pool_.substitute(visible, {{key, at}});
      return there->is_constant() && there->integer != 0;
    });
  }

  ir::ExprPool& pool_;
  const AttentionSpec& form_;
  double mildest_ = -HUGE_VAL;  // of the finite fills
  bool takes_half_scores_ = false;
};

}  // namespace

bool MaskCondition::skips() const {
  return !visible->is_constant() && settled->is_constant() && settled->integer != 0;
}

MaskCondition mask_condition(ir::ExprPool& pool, const AttentionSpec& form) {
  return Masks(pool, form).run();
}

ir::Expr where_visible(ir::ExprPool& pool, ir::Expr visible, ir::Expr e) {
  if (visible->is_constant()) return e;
  std::vector<std::pair<ir::Expr, ir::Expr>> known;
  std::function<void(ir::Expr, bool)> conjuncts = [&](ir::Expr c, bool value) {
    known.emplace_back(c, pool.boolean(value));
    if (c->op == ir::ExprOp::Not) return conjuncts(c->args[0], !value);
    if (c->op != (value ? ir::ExprOp::And : ir::ExprOp::Or)) return;
    for (ir::Expr arg : c->args) conjuncts(arg, value);
  };
  conjuncts(visible, true);
  return pool.substitute(e, known);
}

}  // namespace redfuser::codegen
