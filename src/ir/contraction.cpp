#include "ir/contraction.h"

#include <vector>

namespace redfuser::ir {

Expr without_float_casts(Expr e) {
  while (e->op == ExprOp::Cast && is_float(e->dtype) && is_float(e->args[0]->dtype)) e = e->args[0];
  return e;
}

namespace {

struct Factors {
  ExprPool& pool;
  Expr axis;
  std::vector<Expr> inside;
  Expr outside = nullptr;

  void scale(Expr factor, DType dtype) {
    factor = pool.cast(dtype, factor);
    outside = outside ? pool.mul(outside, factor) : factor;
  }

  bool flatten(Expr e, DType dtype) {
    e = without_float_casts(e);
    if (!e->depends_on(axis)) {
      scale(e, dtype);
      return true;
    }
    switch (e->op) {
      case ExprOp::Mul:
        return flatten(e->args[0], dtype) && flatten(e->args[1], dtype);
      case ExprOp::Div:
        if (e->args[1]->depends_on(axis)) return false;
        scale(pool.make(ExprOp::Reciprocal, {e->args[1]}), dtype);
        return flatten(e->args[0], dtype);
      case ExprOp::Neg:
        scale(pool.number(-1, dtype), dtype);
        return flatten(e->args[0], dtype);
      case ExprOp::Read:
        inside.push_back(e);
        return inside.size() <= 2;
      default:
        return false;
    }
  }
};

}  // namespace

std::optional<Contraction> as_contraction(ExprPool& pool, Expr reduce) {
  if (reduce->op != ExprOp::Reduce || reduce->reduction != Reduction::Sum) return std::nullopt;
  if (!is_float(reduce->dtype)) return std::nullopt;
  Factors factors{pool, reduce->bound_axis(), {}};
  if (!factors.flatten(reduce->body(), reduce->dtype) || factors.inside.size() != 2) {
    return std::nullopt;
  }
  return Contraction{factors.axis, factors.inside[0], factors.inside[1], factors.outside};
}

Expr rebuilt(ExprPool& pool, const Contraction& c, DType dtype) {
  Expr sum =
      pool.reduce(Reduction::Sum, c.axis, pool.mul(pool.cast(dtype, c.a), pool.cast(dtype, c.b)));
  return c.scale ? pool.mul(sum, c.scale) : sum;
}

}  // namespace redfuser::ir
