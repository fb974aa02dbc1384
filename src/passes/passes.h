// The passes. Each returns whether it changed the graph; a second run right after changes nothing.
// All run in time linear in the graph (up to logarithms).
#pragma once

#include "ir/graph.h"

namespace redfuser::passes {

// Replaces outputs whose meaning is "the element of one input at the same index" by that input:
// Identity, a Cast to the same dtype, a Reshape to the same shape, x * 1, an untouched Slice, ...
// Decided by the lowered expression alone.
bool eliminate_identity(ir::Graph& graph);

// Computes nodes whose inputs are all constants, on the CPU. Never folds functions of indices
// (masks, positions), random operators, results above 16 MiB that are larger than four times their
// inputs or mere re-indexing, or reductions above 2^31 terms. Shapes that a folded value decides
// are inferred again.
bool fold_constants(ir::Graph& graph);

// Takes values apart again that are joined along an axis, go through pointwise nodes and reductions
// over that axis, and leave as one part: softmax over scores beside an attention sink.
bool split_concatenation(ir::Graph& graph);

// Merges nodes of the same operator, attributes and inputs, and constants of the same bytes.
bool eliminate_common(ir::Graph& graph);

// Removes nodes that no output needs, and values that nothing refers to; renumbers both.
bool eliminate_dead(ir::Graph& graph);

// Replaces large constants that hold one number, one of two by the distance of two indices (an
// additive causal mask, a window), or integers at even steps (positions), by nodes that say so:
// they are then computed where they are needed, and whole tiles of masks are known. For execution.
bool recover_index_expressions(ir::Graph& graph);

// Makes one product of several that multiply one value by constant matrices, each perhaps with a
// constant vector added: A·B1 + c1, A·B2 + c2 are slices of A·[B1, B2] + [c1, c2]. For
// execution: in files, the weights keep their names.
bool merge_products(ir::Graph& graph);

}  // namespace redfuser::passes
