#include "ir/contraction.h"

#include <vector>

namespace redfuser::ir {

Expr without_float_casts(Expr e) {
  while (e->op == ExprOp::Cast && is_float(e->dtype) && is_float(e->args[0]->dtype)) e = e->args[0];
  return e;
}

namespace {

bool is_code(Expr e) {
  return e->op == ExprOp::Read && is_low_bit_float(e->dtype) && bits_of(e->dtype) == 8;
}

struct Factors {
  ExprPool& pool;
  Expr axis;
  Operands operands;
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
      case ExprOp::Cast:
        if (operands == Operands::Floats || !is_code(e->args[0])) return false;
        e = e->args[0];
        [[fallthrough]];
      case ExprOp::Read:
        inside.push_back(e);
        return inside.size() <= 2;
      default:
        return false;
    }
  }
};

// x or x − zero, where x is an 8-bit Read that depends on the axis and zero does not.
struct Difference {
  Expr read = nullptr, zero = nullptr;
};
std::optional<Difference> difference_of(Expr e, Expr axis) {
  Difference result;
  if (e->op == ExprOp::Sub && !e->args[1]->depends_on(axis)) {
    if (!e->args[1]->is_constant(0)) result.zero = e->args[1];
    e = e->args[0];
  }
  if (e->op != ExprOp::Cast) return std::nullopt;
  result.read = e->args[0];
  const bool byte = result.read->dtype == DType::Int8 || result.read->dtype == DType::UInt8;
  if (!byte || result.read->op != ExprOp::Read || !result.read->depends_on(axis)) {
    return std::nullopt;
  }
  return result;
}

}  // namespace

std::optional<IntegerContraction> as_integer_contraction(Expr reduce) {
  if (reduce->op != ExprOp::Reduce || reduce->reduction != Reduction::Sum) return std::nullopt;
  Expr axis = reduce->bound_axis(), product = reduce->body();
  if (reduce->dtype != DType::Int32 || product->op != ExprOp::Mul) return std::nullopt;
  const auto a = difference_of(product->args[0], axis), b = difference_of(product->args[1], axis);
  if (product->args.size() != 2 || !a || !b) return std::nullopt;
  return IntegerContraction{axis, a->read, b->read, a->zero, b->zero};
}

std::optional<ScaledInteger> as_scaled_integer(Expr e) {
  ScaledInteger result;
  while (e->op == ExprOp::Mul && e->dtype == DType::Float32) {
    const size_t constant = e->args[1]->is_constant() ? 1 : 0;
    if (!e->args[constant]->is_constant()) return std::nullopt;
    result.scale *= e->args[constant]->number;
    e = e->args[1 - constant];
  }
  if (e->op != ExprOp::Cast || e->dtype != DType::Float32) return std::nullopt;
  e = e->args[0];
  if (e->op == ExprOp::Sub && e->dtype == DType::Int32 && e->args[1]->is_constant()) {
    result.zero = e->args[1]->integer;
    e = e->args[0];
  }
  while (e->op == ExprOp::Cast && e->dtype == DType::Int32) e = e->args[0];
  const bool byte = e->dtype == DType::Int8 || e->dtype == DType::UInt8;
  if (!byte || e->op != ExprOp::Read) return std::nullopt;
  result.code = e;
  return result;
}

std::optional<Contraction> as_contraction(ExprPool& pool, Expr reduce, Operands operands) {
  if (reduce->op != ExprOp::Reduce || reduce->reduction != Reduction::Sum) return std::nullopt;
  if (!is_float(reduce->dtype)) return std::nullopt;
  Factors factors{pool, reduce->bound_axis(), operands, {}};
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
