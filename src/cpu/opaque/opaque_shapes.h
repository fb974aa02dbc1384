// Sizes that a run computes.
#pragma once

#include "cpu/step.h"

namespace redfuser::cpu {

// Binds the unbound symbols of the shape of `value` so that it equals `dims`. Throws UserError if a
// known size differs.
void bind_shape(RunContext& context, ir::ValueId value, const Dims& dims);

// Binds the symbols of the outputs of a node that has a lowering, from the contents of its inputs
// (Reshape, Expand, Slice, Range, Tile, ... with sizes computed at run time), by applying the
// operator's shape rule to the tensors at hand. Call it before the step that computes the node,
// when the inputs that determine the sizes are computed (of other inputs the sizes suffice). Nodes
// without unbound symbols only cost a test.
void bind_runtime_shape(RunContext& context, const ir::Node& node);

// True if an output of the node has a size with an unbound symbol.
bool has_unbound_shape(const RunContext& context, const ir::Node& node);

}  // namespace redfuser::cpu
