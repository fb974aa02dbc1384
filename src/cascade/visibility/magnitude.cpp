#include "cascade/visibility/magnitude.h"

#include <algorithm>
#include <cmath>

namespace redfuser {
namespace {

constexpr double kLargestIndex = 0x1p40;

class Bounds {
 public:
  Bounds(ExprPool& pool, const KnownBound& known) : pool_(pool), known_(known) {}

  Expr magnitude(Expr e) {
    if (Expr bound = known_(e)) return bound;
    if (e->dtype == DType::Bool) return number(1);
    switch (e->op) {
      case ExprOp::Constant:
        return number(std::abs(value_of(e)));
      case ExprOp::Read:
        if (is_float(e->dtype)) return none();
        return number(std::ldexp(1, 8 * static_cast<int>(size_of(e->dtype))));
      case ExprOp::Axis:
      case ExprOp::Symbol:
        return number(kLargestIndex);
      case ExprOp::Cast:
      case ExprOp::Neg:
      case ExprOp::Abs:
        return magnitude(e->args[0]);
      case ExprOp::Add:
      case ExprOp::Sub:
        return of_all(ExprOp::Add, e, 0);
      case ExprOp::Mul:
        return of_all(ExprOp::Mul, e, 0);
      case ExprOp::Div:
        if (!e->args[1]->is_constant() || !is_float(e->dtype)) return none();
        return pool_.div(magnitude(e->args[0]), number(std::abs(value_of(e->args[1]))));
      case ExprOp::Tanh:
      case ExprOp::Erf:
      case ExprOp::Sin:
      case ExprOp::Cos:
        return number(1);
      case ExprOp::Select:
        return of_all(ExprOp::Max, e, 1);
      case ExprOp::Min:
      case ExprOp::Max:
        return of_all(ExprOp::Max, e, 0);
      case ExprOp::Reduce:
        return of_reduction(e);
      default:
        return none();
    }
  }

  Expr upper_bound(Expr e) {
    if (!is_float(e->dtype)) return magnitude(e);
    switch (e->op) {
      case ExprOp::Constant:
        return number(std::max(e->number, 0.0));
      case ExprOp::Cast:
        return upper_bound(e->args[0]);
      case ExprOp::Add:
        return pool_.add(upper_bound(e->args[0]), upper_bound(e->args[1]));
      case ExprOp::Select:
        return pool_.make(ExprOp::Max, {upper_bound(e->args[1]), upper_bound(e->args[2])});
      default:
        return magnitude(e);
    }
  }

 private:
  static double value_of(Expr constant) {
    return is_float(constant->dtype) ? constant->number : static_cast<double>(constant->integer);
  }
  Expr number(double value) { return pool_.number(value, DType::Float64); }
  Expr none() { return number(HUGE_VAL); }

  // The operation on the magnitudes of the arguments from `first` on.
  Expr of_all(ExprOp op, Expr e, size_t first) {
    Expr result = magnitude(e->args[first]);
    for (size_t i = first + 1; i < e->args.size(); ++i) {
      result = pool_.make(op, {result, magnitude(e->args[i])});
    }
    return result;
  }

  Expr of_reduction(Expr e) {
    Expr each = magnitude(e->args[1]);
    if (e->reduction == Reduction::Max || e->reduction == Reduction::Min) return each;
    if (e->reduction != Reduction::Sum) return none();
    return pool_.mul(pool_.cast(DType::Float64, e->args[0]->extent()), each);
  }

  ExprPool& pool_;
  const KnownBound& known_;
};

}  // namespace

Expr magnitude(ExprPool& pool, Expr e, const KnownBound& known) {
  return Bounds(pool, known).magnitude(e);
}

Expr upper_bound(ExprPool& pool, Expr e, const KnownBound& known) {
  return Bounds(pool, known).upper_bound(e);
}

}  // namespace redfuser
