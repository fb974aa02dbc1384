#include "cascade/algebra/sign.h"

#include <algorithm>
#include <unordered_map>

#include "ir/scalars/integers.h"
#include "ir/scalars/operations.h"

namespace redfuser::cascade {
namespace {

Sign negated(Sign sign) { return sign == Sign::Positive ? Sign::Negative : Sign::Unknown; }

Sign of_product(Sign a, Sign b) {
  if (a == Sign::Unknown || b == Sign::Unknown) return Sign::Unknown;
  if (a == Sign::NonNegative || b == Sign::NonNegative) {
    return a == Sign::Negative || b == Sign::Negative ? Sign::Unknown : Sign::NonNegative;
  }
  return a == b ? Sign::Positive : Sign::Negative;
}

Sign of_sum(Sign a, Sign b) {
  if (a == b) return a;
  const bool nonnegative =
      a != Sign::Unknown && a != Sign::Negative && b != Sign::Unknown && b != Sign::Negative;
  return nonnegative ? Sign::Positive : Sign::Unknown;
}

Sign of_constant(ir::Expr e) {
  const double value = is_float(e->dtype) ? e->number : ir::number_of_word(e->dtype, e->integer);
  if (value > 0) return Sign::Positive;
  if (value < 0) return Sign::Negative;
  return value == 0 ? Sign::NonNegative : Sign::Unknown;
}

Sign of_results(ir::ExprOp op) {
  switch (ir::scalar_op(op).sign) {
    case ir::ResultSign::Positive:
      return Sign::Positive;
    case ir::ResultSign::NonNegative:
      return Sign::NonNegative;
    case ir::ResultSign::Unknown:
      break;
  }
  return Sign::Unknown;
}

bool is_element(ir::Expr e) {
  const bool counts = e->op == ir::ExprOp::Leaf && e->leaf_kind == ir::LeafKind::Count;
  return is_integer(e->dtype) && (e->has_read || e->has_leaf) && !counts;
}

// Expressions share subexpressions; the sign of each is found once.
class Signs {
 public:
  explicit Signs(const StageScope& scope) : scope_(scope) {}

  Sign of(ir::Expr e) {
    const auto known = known_.find(e);
    if (known != known_.end()) return known->second;
    const Sign sign = derived(e);
    known_.emplace(e, sign);
    return sign;
  }

 private:
  Sign derived(ir::Expr e);

  const StageScope& scope_;
  std::unordered_map<ir::Expr, Sign> known_;
};

Sign Signs::derived(ir::Expr e) {
  // Integer elements wrap around, so only their type bounds them.
  if (is_element(e)) return ir::is_unsigned(e->dtype) ? Sign::NonNegative : Sign::Unknown;
  auto of = [&](size_t i) { return this->of(e->args[i]); };
  switch (e->op) {
    case ir::ExprOp::Constant:
      return of_constant(e);
    case ir::ExprOp::Symbol:
      return Sign::Positive;
    case ir::ExprOp::Axis:
      return Sign::NonNegative;
    case ir::ExprOp::Cast:
    case ir::ExprOp::Reciprocal:
      return of(0);
    case ir::ExprOp::Sqrt:
      return of(0) == Sign::Positive ? Sign::Positive : Sign::NonNegative;
    case ir::ExprOp::Neg:
      return negated(of(0));
    case ir::ExprOp::Mul: {
      if (e->args.size() == 2 && e->args[0] == e->args[1]) {
        return of(0) == Sign::Positive ? Sign::Positive : Sign::NonNegative;
      }
      Sign sign = of(0);
      for (size_t i = 1; i < e->args.size(); ++i) sign = of_product(sign, of(i));
      return sign;
    }
    case ir::ExprOp::Div:
      return of_product(of(0), of(1));
    case ir::ExprOp::Add: {
      Sign sign = of(0);
      for (size_t i = 1; i < e->args.size(); ++i) sign = of_sum(sign, of(i));
      return sign;
    }
    case ir::ExprOp::Pow:
      if (e->args[1]->is_constant(2)) return Sign::NonNegative;
      return of(0) == Sign::Positive ? Sign::Positive : Sign::Unknown;
    case ir::ExprOp::Max:
      if (of(0) == Sign::Positive || of(1) == Sign::Positive) return Sign::Positive;
      return of(0) == Sign::NonNegative || of(1) == Sign::NonNegative ? Sign::NonNegative
                                                                      : Sign::Unknown;
    case ir::ExprOp::Select:
      return of(1) == of(2) ? of(1) : Sign::Unknown;
    case ir::ExprOp::Leaf:
      if (e->leaf_kind == ir::LeafKind::Count) return Sign::Positive;
      if (e->leaf_kind == ir::LeafKind::Result) {
        return this->of(scope_.stages[static_cast<size_t>(e->integer)].body);
      }
      return Sign::Unknown;
    case ir::ExprOp::Reduce:
      return this->of(e->body());
    default:
      return of_results(e->op);
  }
}

}  // namespace

Sign sign_of(const StageScope& scope, ir::Expr e) { return Signs(scope).of(e); }

namespace {

std::optional<Monotone> flipped(std::optional<Monotone> monotone, bool flip) {
  if (monotone && flip) monotone->increasing = !monotone->increasing;
  return monotone;
}

// One argument depends on the streamed element, the other does not; `sign` is the sign of the
// other.
std::optional<Monotone> of_factor(const StageScope& scope, ir::Expr streamed, Sign sign) {
  if (sign != Sign::Positive && sign != Sign::Negative) return std::nullopt;
  return flipped(monotone(scope, streamed), sign == Sign::Negative);
}

}  // namespace

std::optional<Monotone> monotone(const StageScope& scope, ir::Expr e) {
  if (!scope.results(e)) return Monotone{e, true};
  if (!scope.streamed(e)) return std::nullopt;
  auto streamed = [&](size_t i) { return scope.streamed(e->args[i]); };
  switch (e->op) {
    case ir::ExprOp::Neg:
      return flipped(monotone(scope, e->args[0]), true);
    case ir::ExprOp::Cast:
      return is_float(e->dtype) && is_float(e->args[0]->dtype) ? monotone(scope, e->args[0])
                                                               : std::nullopt;
    case ir::ExprOp::Reciprocal:
      return sign_of(scope, e->args[0]) == Sign::Positive
                 ? flipped(monotone(scope, e->args[0]), true)
                 : std::nullopt;
    case ir::ExprOp::Add:
    case ir::ExprOp::Sub:
      if (streamed(0) && streamed(1)) return std::nullopt;
      return streamed(0) ? monotone(scope, e->args[0])
                         : flipped(monotone(scope, e->args[1]), e->op == ir::ExprOp::Sub);
    case ir::ExprOp::Mul:
      if (streamed(0) && streamed(1)) return std::nullopt;
      return of_factor(scope, e->args[streamed(0) ? 0 : 1],
                       sign_of(scope, e->args[streamed(0) ? 1 : 0]));
    case ir::ExprOp::Div:
      if (streamed(0) && streamed(1)) return std::nullopt;
      if (streamed(0)) return of_factor(scope, e->args[0], sign_of(scope, e->args[1]));
      if (sign_of(scope, e->args[1]) != Sign::Positive) return std::nullopt;
      return flipped(of_factor(scope, e->args[1], sign_of(scope, e->args[0])), true);
    default:
      return ir::scalar_op(e->op).increasing ? monotone(scope, e->args[0]) : std::nullopt;
  }
}

}  // namespace redfuser::cascade
