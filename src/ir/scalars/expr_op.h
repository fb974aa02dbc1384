// The operations of expressions (ir/expr.h).
#pragma once

#include <cstdint>

namespace redfuser::ir {

enum class ExprOp : uint8_t {
  // Leaves.
  Constant,  // number (float dtypes) or integer (integer dtypes and Bool)
  Symbol,    // a run-time size, Int64, at least 1 wherever an element exists
  Axis,      // a loop index in [0, extent); args = {extent}
  Leaf,      // a value supplied by the context: leaf_kind and index
  Read,      // element args[0..rank) of the tensor value `index`
// The scalar operations. Add and Mul are n-ary for Int64, binary otherwise; Div
// truncates on integers; Min and Max are NaN if either operand is.
#define RF_SCALAR_OP(NAME, REFERENCE, ...) NAME,
#include "ir/scalars/operations.def"
  Select,  // args = {condition, then, else}
  Cast,    // to the node's dtype
  Reduce,  // reduction over `bound axis` args[0] of args[1]; extra arguments in args[2..]
};

}  // namespace redfuser::ir
