// The equations of Einsum.
#pragma once

#include <map>
#include <vector>

#include "ops/op_def.h"

namespace redfuser::ops {

// A parsed equation. Labels are letters; the dimensions of an ellipsis are the labels 0, -1, -2,
// ... from the right, so that they broadcast as in numpy.
struct Equation {
  std::vector<std::vector<int>> terms;
  std::vector<int> output;
  std::vector<int> summed;       // in order of appearance
  std::map<int, ir::Expr> size;  // of every label
};

// Of a node with an equation. Throws UserError for one that does not fit the inputs.
Equation equation_of(const NodeView& view);

}  // namespace redfuser::ops
