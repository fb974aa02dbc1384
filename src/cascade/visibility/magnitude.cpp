#include "cascade/visibility/magnitude.h"

#include <algorithm>
#include <cmath>

#include "ir/scalars/operations.h"

namespace redfuser::cascade {
namespace {

constexpr double kLargestIndex = 0x1p40;

class Bounds {
 public:
  Bounds(ir::ExprPool& pool, const KnownBound& known) : pool_(pool), known_(known) {}

  ir::Expr magnitude(ir::Expr e) {
    if (ir::Expr bound = known_(e)) return bound;
    if (e->dtype == DType::Bool) return number(1);
    switch (e->op) {
      case ir::ExprOp::Constant:
        return number(std::abs(value_of(e)));
      case ir::ExprOp::Read:
        if (is_float(e->dtype)) return none();
        return number(std::ldexp(1, 8 * static_cast<int>(size_of(e->dtype))));
      case ir::ExprOp::Axis:
      case ir::ExprOp::Symbol:
        return number(kLargestIndex);
      case ir::ExprOp::Cast:
      case ir::ExprOp::Neg:
      case ir::ExprOp::Abs:
        return magnitude(e->args[0]);
      case ir::ExprOp::Add:
      case ir::ExprOp::Sub:
        return of_all(ir::ExprOp::Add, e, 0);
      case ir::ExprOp::Mul:
        return of_all(ir::ExprOp::Mul, e, 0);
      case ir::ExprOp::Div:
        if (!e->args[1]->is_constant() || !is_float(e->dtype)) return none();
        return pool_.div(magnitude(e->args[0]), number(std::abs(value_of(e->args[1]))));
      case ir::ExprOp::Select:
        return of_all(ir::ExprOp::Max, e, 1);
      case ir::ExprOp::Min:
      case ir::ExprOp::Max:
        return of_all(ir::ExprOp::Max, e, 0);
      case ir::ExprOp::Reduce:
        return of_reduction(e);
      default:
        return number(ir::scalar_op(e->op).bound);
    }
  }

  ir::Expr upper_bound(ir::Expr e) {
    if (!is_float(e->dtype)) return magnitude(e);
    switch (e->op) {
      case ir::ExprOp::Constant:
        return number(std::max(e->number, 0.0));
      case ir::ExprOp::Cast:
        return upper_bound(e->args[0]);
      case ir::ExprOp::Add:
        return pool_.add(upper_bound(e->args[0]), upper_bound(e->args[1]));
      case ir::ExprOp::Select:
        return pool_.make(ir::ExprOp::Max, {upper_bound(e->args[1]), upper_bound(e->args[2])});
      default:
        return magnitude(e);
    }
  }

 private:
  static double value_of(ir::Expr constant) {
    return is_float(constant->dtype) ? constant->number : static_cast<double>(constant->integer);
  }
  ir::Expr number(double value) { return pool_.number(value, DType::Float64); }
  ir::Expr none() { return number(HUGE_VAL); }

  // The operation on the magnitudes of the arguments from `first` on.
  ir::Expr of_all(ir::ExprOp op, ir::Expr e, size_t first) {
    ir::Expr result = magnitude(e->args[first]);
    for (size_t i = first + 1; i < e->args.size(); ++i) {
      result = pool_.make(op, {result, magnitude(e->args[i])});
    }
    return result;
  }

  ir::Expr of_reduction(ir::Expr e) {
    ir::Expr each = magnitude(e->args[1]);
    if (e->reduction == ir::Reduction::Max || e->reduction == ir::Reduction::Min) return each;
    if (e->reduction != ir::Reduction::Sum) return none();
    return pool_.mul(pool_.cast(DType::Float64, e->args[0]->extent()), each);
  }

  ir::ExprPool& pool_;
  const KnownBound& known_;
};

}  // namespace

ir::Expr magnitude(ir::ExprPool& pool, ir::Expr e, const KnownBound& known) {
  return Bounds(pool, known).magnitude(e);
}

ir::Expr upper_bound(ir::ExprPool& pool, ir::Expr e, const KnownBound& known) {
  return Bounds(pool, known).upper_bound(e);
}

}  // namespace redfuser::cascade
