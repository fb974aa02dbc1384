// How much precision an operator's floats need, decided by its lowered expression.
#pragma once

#include "ir/graph.h"

namespace redfuser {

enum class Sensitivity {
  Product,  // a contraction: operands and result may be narrow, its sums are fp32 wherever it runs
  Moves,    // re-indexes and selects
  Follows,  // no worse than its operands: sums, products, bounded functions
  Single,   // needs fp32: reductions, growing functions, rounding, quotients by data
};

struct NodeSensitivity {
  Sensitivity kind = Sensitivity::Single;
  bool multiplies = false;  // the product of two computed values: its range is the square of theirs
  bool sums = false;        // reduces by a sum or a product
};

// An operator without a lowering is Single unless it is known to compute as narrow as it reads. So
// is one whose output's type is an attribute, or a function of indices.
NodeSensitivity sensitivity_of(const Graph& graph, const Node& node);

}  // namespace redfuser
