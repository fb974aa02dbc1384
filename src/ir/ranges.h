// Proofs about integer expressions from the ranges of axes and sizes.
#pragma once

#include <vector>

#include "ir/polynomial.h"

namespace redfuser::ir {

// Sizes that a proof assumes to be at least 1: all symbols, or the given expressions. Other sizes
// may be 0, except factors of the extent of an axis in the expression: where that axis has an
// index, its extent is at least 1.
struct Positive {
  bool all = false;
  std::vector<Expr> sizes = {};
};
// For code that runs only if elements exist: kernels.
inline const Positive kWhereElementsExist{true};
// The factors of a divisor are at least 1, since a divisor is not 0.
Positive nonzero(Expr divisor);

// True if the value is at least zero for every axis within its extent. False means "not proved".
// Sizes and indices do not overflow. Sums and products of tensor elements may wrap around, so
// nothing is proved about them.
bool proved_nonnegative(Expr expr, const Positive& positive = {});
bool proved_nonnegative(const Polynomial& polynomial, const Positive& positive = {});
// True if proved a <= b, a < b.
bool proved_less_equal(ExprPool& pool, Expr a, Expr b, const Positive& positive = {});
bool proved_less(ExprPool& pool, Expr a, Expr b, const Positive& positive = {});

}  // namespace redfuser::ir
