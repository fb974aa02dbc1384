// Outputs of a plan that are an input followed by new positions, such as the cache of a decoder.
#pragma once

#include <vector>

#include "fuse/plan.h"

namespace redfuser::fuse {

// An output that is an input followed by new positions along `axis`, for every size. One
// elementwise step computes it.
struct Continuation {
  ir::ValueId past, present;
  size_t axis;
};
std::vector<Continuation> find_continuations(const Plan& plan);

// A run may write positions [begin, end) of an output alone, where the end is the output's size,
// into memory that has the earlier positions. The memory has room for `room` positions.
struct Append {
  ir::ValueId past, present;  // an input and an output, computed by one elementwise step
  size_t axis;
  // Symbols that no input binds; appends of equal sizes share them. Dense memory that is written
  // whole: 0 and the output's size.
  ir::Expr begin, room;
};

// The continuations where nothing else reads the input and no step reads the output without its
// indices. Adds symbols to the plan's graph.
std::vector<Append> find_appends(const Plan& plan);

// The symbols of dense memory that is written whole, where the output's size is known.
void bind_dense(const Append& append, const ir::Graph& graph, std::vector<int64_t>& symbols);

}  // namespace redfuser::fuse
