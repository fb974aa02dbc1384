// How much precision an operator's floats need, decided by its lowered expression or its
// definition.
#pragma once

#include "ops/op_def.h"

namespace redfuser::passes {

struct NodePrecision {
  ops::PrecisionClass kind = ops::PrecisionClass::Single;
  bool multiplies = false;  // the product of two computed values: its range is the square of theirs
  bool sums = false;        // reduces by a sum or a product
};

// Operators without a lowering have the class of their definition. Operators whose output type is
// an attribute, and functions of indices, are Single.
NodePrecision precision_class_of(const ir::Graph& graph, const ir::Node& node);

}  // namespace redfuser::passes
