// What has to hold of values so that the elements that a mask hides leave a state as it is.
//
// In a lift a mask is a selection by indices (or a number made of such a condition) that makes an
// element 0 or infinite. 0 · x and 0 / x are 0, and inf + x is infinite, for finite x alone, and a
// sum of finite values may overflow. What a selection replaces may be anything.
#pragma once

#include <vector>

#include "ir/expr.h"

namespace redfuser::cascade {

struct MaskedOperands {
  std::vector<int64_t> values;  // every element of these is to be finite
  struct Bound {
    ir::Expr magnitude;  // Float64, over the leaves largest_of
    double limit;        // to stay below
  };
  std::vector<Bound> bounds;
  bool decidable = true;  // false: whatever values and bounds are, elements may matter
};

// The largest magnitude among the elements of a value.
ir::Expr largest_of(ir::ExprPool& pool, int64_t value);

// Adds what a lift of the reduction asks for.
void add_masked_operands(ir::ExprPool& pool, ir::Reduction reduction, ir::Expr lift,
                         MaskedOperands& operands);

// Adds the floats that e is computed from; not those that conditions compare.
void add_reads(ir::Expr e, MaskedOperands& operands);

}  // namespace redfuser::cascade
