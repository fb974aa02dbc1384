// Operators that src/ops gives no expression, by their definition in the ONNX standard.
#pragma once

#include <string_view>
#include <vector>

#include "ops/op_def.h"

namespace redfuser::reference {

// What an operator's `lower` would be, for a node whose sizes are all constants; null for an
// operator that has no expression here.
using Lower = ir::Expr (*)(ops::LowerContext&);
Lower expression_of(const ir::Node& node);

// The outputs of a node whose inputs are constants, for operators whose results are no
// expressions; null for others.
using Direct = std::vector<Tensor> (*)(const ops::NodeView&);
Direct function_of(const ir::Node& node);

// Whether an operator has an expression, here or in src/ops, or a function, or is a constant. What
// a node's types ask for beside shows when it is evaluated.
bool is_covered(const ir::Node& node);

}  // namespace redfuser::reference
