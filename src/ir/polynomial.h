// Integer polynomials over atoms (symbols, axes, and every other integer expression), the canonical
// form of sizes and indices.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "ir/expr.h"
#include "redfuser/error.h"

namespace redfuser::ir {

struct ById {
  bool operator()(Expr a, Expr b) const { return a->id < b->id; }
};
// A product of atoms, sorted by id, repeated for powers; empty for the constant term.
using Monomial = std::vector<Expr>;
struct MonomialLess {
  bool operator()(const Monomial& a, const Monomial& b) const;
};
using Polynomial = std::map<Monomial, int64_t, MonomialLess>;

// Thrown by the operations below, and where sizes are evaluated, for a number beyond 64 bits.
struct CoefficientOverflow : UserError {
  CoefficientOverflow() : UserError("a size or index overflows 64 bits") {}
};

// The polynomial of an Int64 expression; atoms are its non-polynomial parts.
Polynomial to_polynomial(Expr expr);
Expr from_polynomial(ExprPool& pool, const Polynomial& polynomial);
Polynomial operator+(Polynomial a, const Polynomial& b);
Polynomial operator*(const Polynomial& a, const Polynomial& b);
// Whether a product is expanded. Powers of sums have exponentially many terms; a product that is
// not expanded stays one atom.
bool expands(const Polynomial& a, const Polynomial& b);
Polynomial scaled(const Polynomial& a, int64_t factor);

// dividend = quotient * divisor + remainder, by cancelling the divisor's leading monomial.
struct Division {
  Polynomial quotient, remainder;
};
Division divide(const Polynomial& dividend, const Polynomial& divisor);

// floor(a / b), or a - b * floor(a / b) if `modulo`, in mixed radix, by exact division and proved
// ranges; null if b is 0.
Expr fold_floor(ExprPool& pool, bool modulo, Expr a, Expr b);

// expr = base + axis * stride with base and stride free of the axis; nullopt if not affine in it.
struct Affine {
  Expr base, stride;
};
std::optional<Affine> affine_in(ExprPool& pool, Expr expr, Expr axis);

}  // namespace redfuser::ir
