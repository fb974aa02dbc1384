// Which steps of a plan may become one.
#pragma once

#include <set>
#include <vector>

#include "codegen/core/gpu_step.h"

namespace redfuser::codegen {

// Steps that the last one of them, their leader, computes.
struct JoinedGroup {
  enum class Kind {
    ThinRows,   // the rows of a cascade, and the product of few rows that alone reads them
    Maps,       // elementwise steps
    BlockMaps,  // elementwise steps, and the attention that reads them
    Chain,      // two products: the second one alone reads the first one's result, row by row
  };
  Kind kind;
  std::vector<size_t> steps;  // ascending
};

// Groups without a common step, none of which is `on_host`. That every step of a group is computed
// in the leader's place changes no result: a step in between touches nothing, by itself or through
// an alias, that an earlier step of the group writes, and writes nothing that this one reads.
// Neither does one map of a group what another one touches. Where outputs may be in the memory of
// inputs depends on the steps' places (JoinedSteps::place_of).
std::vector<JoinedGroup> find_joined(const ir::Graph& graph, const fuse::Plan& plan,
                                     const Target& target, const std::set<size_t>& on_host);

}  // namespace redfuser::codegen
