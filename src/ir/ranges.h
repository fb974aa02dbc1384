// Proofs about integer expressions from the ranges of axes and sizes.
#pragma once

#include <vector>

#include "ir/polynomial.h"

namespace redfuser::ir {

// What a proof takes to be at least 1: all symbols, or the expressions given. Any other size may be
// 0, unless an axis whose extent has it as a factor occurs in what is proved: there, an element
// exists.
struct Positive {
  bool all = false;
  std::vector<Expr> sizes = {};
};
// For what runs only where elements exist: the text of kernels.
inline const Positive kWhereElementsExist{true};
// What follows for the sizes that `divisor` is a product of: where it divides, it is not 0.
Positive nonzero(Expr divisor);

// True if the value is at least zero for every axis within its extent. False means "not proved".
// Sizes and indices do not overflow; elements of tensors may be of any size, and sums and products
// of them wrap around: nothing is proved of these.
bool proved_nonnegative(Expr expr, const Positive& positive = {});
bool proved_nonnegative(const Polynomial& polynomial, const Positive& positive = {});
// True if proved a <= b, a < b.
bool proved_less_equal(ExprPool& pool, Expr a, Expr b, const Positive& positive = {});
bool proved_less(ExprPool& pool, Expr a, Expr b, const Positive& positive = {});

}  // namespace redfuser::ir
