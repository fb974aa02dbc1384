// Operators without a lowering in src/ops, by their definition in the ONNX standard.
#pragma once

#include <string_view>
#include <vector>

#include "ops/op_def.h"

namespace redfuser::reference {

// A lowering for nodes whose sizes are all constants; null for an operator without one.
using Lower = ir::Expr (*)(ops::LowerContext&);
Lower expression_of(const ir::Node& node);

// Computes the outputs of a node whose inputs are constants, for operators that are not
// expressions; null for others.
using Direct = std::vector<Tensor> (*)(const ops::NodeView&);
Direct function_of(const ir::Node& node);

// Whether the reference can evaluate the operator: it has a lowering, here or in src/ops, or a
// function here, or is a constant. Unsupported types are found when it is evaluated.
bool is_covered(const ir::Node& node);

}  // namespace redfuser::reference
