// The passes. Each returns whether it changed the graph; a second run right after changes nothing.
// All run in time linear in the graph (up to logarithms).
#pragma once

#include "ir/graph.h"

namespace redfuser::passes {

// Replaces outputs that lower to "the element of one input at the same index" by that input:
// Identity, a Cast to the same dtype, a Reshape to the same shape, x * 1, a Slice of everything,
// ... Decided by the lowered expression alone.
bool eliminate_identity(ir::Graph& graph);

// Computes nodes whose inputs are all constants, on the CPU, and what reduces constants with
// functions of indices to fewer elements (a matrix times zeros). Never folds other functions of
// indices (masks, positions), random operators, results above 16 MiB that are larger than four
// times their inputs or have their elements in another order, 8-bit floats that products multiply
// by others, and reductions of more than 2^31 terms. Infers shapes again that depend on a folded
// value. Finds the codes of matrices that are functions of integers (ir::WeightCodes).
bool fold_constants(ir::Graph& graph);

// Splits values that are concatenated along an axis, pass through pointwise nodes and reductions
// over that axis, and end as a slice of one part: a softmax over scores and an attention sink.
bool split_concatenation(ir::Graph& graph);

// Replaces the positions of the nonzero elements of a value that is nonzero everywhere, such as
// ones of a given shape, by functions of their numbers. Their count is then known by sizes.
bool nonzero_indices(ir::Graph& graph);

// Replaces scatters whose positions are known and form a box by concatenations of the updates and
// the data around them. Neighbouring steps fuse with a concatenation, and not with a scatter.
bool join_scatters(ir::Graph& graph);

// Merges nodes of the same operator, attributes and inputs, and constants of the same bytes.
bool eliminate_common(ir::Graph& graph);

// Removes nodes that do not contribute to an output, and unused values; renumbers both.
bool eliminate_dead(ir::Graph& graph);

// Divides sums of products of three to six values into sums of products of two, in the order of the
// fewest products:
//
//   Σ_h Σ_k a[q,k]·w[h,g]·v[k,h] = Σ_h w[h,g]·(Σ_k a[q,k]·v[k,h])
//
// Left whole are sums that take fewer products at once (Σ a·b·c over one axis), products of two
// values with a factor that is free of the summed axis, and results of 16 bits, which would round
// in between. Where a product of two floats sums several axes, it reads an operand transposed so
// that they stand side by side in both. For execution.
bool divide_einsums(ir::Graph& graph);

// Multiplies constant scales of the channels behind a convolution into its weights, and adds
// constant shifts to its bias: those of a normalisation by constant statistics. For weights of
// float32 and float64, which round to narrower types. For execution only, since the weights lose
// their names.
bool fold_scales(ir::Graph& graph);

// Replaces a concatenation of slices that follow each other in constant steps, one per window, by a
// read at positions that are functions of the window and the place in it. For execution.
bool join_windows(ir::Graph& graph);

// Replaces large constants by expressions of their indices: uniform constants, bands (an additive
// causal mask, a window), and arithmetic progressions of integers (positions). They are then
// computed in place, and fully masked tiles are known. For execution.
bool recover_index_expressions(ir::Graph& graph);

// Stores constant matrices of 8-bit floats along the axis over which products of such floats sum:
// the only layout that tensor cores multiply. For execution only, since the weights lose their
// names.
bool align_codes(ir::Graph& graph);

// Merges products of one value with several constant matrices, with or without constant vectors
// added: A·B1 + c1 and A·B2 + c2 are slices of A·[B1, B2] + [c1, c2]. For execution only, since the
// weights lose their names.
bool merge_products(ir::Graph& graph);

}  // namespace redfuser::passes
