#include "cascade/derive/trend.h"

#include <cmath>
#include <unordered_map>

#include "ir/scalars/operations.h"

namespace redfuser::cascade {
namespace {

enum class Trend { Constant, Rising, Falling, Unknown };

Trend flipped(Trend trend) {
  if (trend == Trend::Rising) return Trend::Falling;
  return trend == Trend::Falling ? Trend::Rising : trend;
}

// Of a sum or an extremum of both.
Trend joined(Trend a, Trend b) {
  if (a == Trend::Constant) return b;
  return b == Trend::Constant || a == b ? a : Trend::Unknown;
}

Trend scaled(Trend trend, double factor) {
  if (std::isnan(factor)) return Trend::Unknown;
  return factor < 0 ? flipped(trend) : trend;
}

bool is_number(ir::Expr e) { return e->is_constant() && is_float(e->dtype); }

// Tests of a value for infinity, and combinations of them.
bool tests_infinity(ir::Expr e) {
  switch (e->op) {
    case ir::ExprOp::IsNegInf:
    case ir::ExprOp::IsPosInf:
      return true;
    case ir::ExprOp::Equal:
      return is_number(e->args[1]) && std::isinf(e->args[1]->number);
    case ir::ExprOp::Or:
    case ir::ExprOp::And:
      return tests_infinity(e->args[0]) && tests_infinity(e->args[1]);
    case ir::ExprOp::Not:
      return tests_infinity(e->args[0]);
    default:
      return false;
  }
}

// Expressions share subexpressions; the trend of each is found once.
class Trends {
 public:
  explicit Trends(const StreamingBuilder& builder) : builder_(builder) {}

  Trend of(ir::Expr e) {
    if (!e->has_leaf) return Trend::Constant;
    const auto known = known_.find(e);
    if (known != known_.end()) return known->second;
    const Trend trend = derived(e);
    known_.emplace(e, trend);
    return trend;
  }

 private:
  Trend of_leaf(ir::Expr e) const {
    if (e->leaf_kind == ir::LeafKind::Count) return Trend::Rising;
    if (e->leaf_kind != ir::LeafKind::State) return Trend::Unknown;
    const Accumulator& a = builder_.streaming.accumulators[static_cast<size_t>(e->integer)];
    if (a.transport != nullptr) return Trend::Unknown;
    if (a.reduction == ir::Reduction::Max) return Trend::Rising;
    return a.reduction == ir::Reduction::Min ? Trend::Falling : Trend::Unknown;
  }

  Trend derived(ir::Expr e) {
    if (e->op == ir::ExprOp::Leaf) return of_leaf(e);
    if (!is_float(e->dtype)) return Trend::Unknown;
    auto of = [&](size_t i) { return this->of(e->args[i]); };
    switch (e->op) {
      case ir::ExprOp::Cast:
        return of(0);
      case ir::ExprOp::Neg:
        return flipped(of(0));
      case ir::ExprOp::Add:
      case ir::ExprOp::Max:
      case ir::ExprOp::Min:
        return joined(of(0), of(1));
      case ir::ExprOp::Sub:
        return joined(of(0), flipped(of(1)));
      case ir::ExprOp::Mul:
        if (is_number(e->args[0])) return scaled(of(1), e->args[0]->number);
        return is_number(e->args[1]) ? scaled(of(0), e->args[1]->number) : Trend::Unknown;
      case ir::ExprOp::Div:
        return is_number(e->args[1]) ? scaled(of(0), e->args[1]->number) : Trend::Unknown;
      case ir::ExprOp::Select:
        if (!tests_infinity(e->args[0])) return Trend::Unknown;
        if (is_number(e->args[1])) return of(2);
        return is_number(e->args[2]) ? of(1) : Trend::Unknown;
      default:
        return ir::scalar_op(e->op).increasing ? of(0) : Trend::Unknown;
    }
  }

  const StreamingBuilder& builder_;
  std::unordered_map<ir::Expr, Trend> known_;
};

}  // namespace

bool may_fall(const StreamingBuilder& builder, ir::Expr running) {
  const Trend trend = Trends(builder).of(running);
  return trend == Trend::Falling || trend == Trend::Unknown;
}

}  // namespace redfuser::cascade
