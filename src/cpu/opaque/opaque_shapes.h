// Sizes that are known only once a run has computed them.
#pragma once

#include "cpu/step.h"

namespace redfuser::cpu {

// Makes the shape of `value` agree with `dims`: binds the unbound symbols of its size expressions.
// Throws UserError when a size that is already known differs.
void bind_shape(RunContext& context, ir::ValueId value, const Dims& dims);

// Binds the symbols of the outputs of a node that has a lowering, from the contents of its inputs
// (Reshape, Expand, Slice, Range, Tile, ... with sizes computed at run time), by applying the
// operator's shape rule to the tensors at hand. Call it before the step that computes the node,
// when the inputs that decide the sizes are computed (of the others the sizes suffice). A node
// whose outputs have no unbound symbol costs a look at its shapes.
void bind_runtime_shape(RunContext& context, const ir::Node& node);

// True if an output of the node has a size with a symbol not bound so far.
bool has_unbound_shape(const RunContext& context, const ir::Node& node);

}  // namespace redfuser::cpu
