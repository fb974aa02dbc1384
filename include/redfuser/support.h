// Which nodes of a model RedFuser can run, for a runtime that gives it parts of graphs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "redfuser/redfuser.h"

namespace redfuser {

struct NodeSupport {
  // By node of the main graph, in the order of the bytes: why RedFuser cannot run it, or nothing.
  std::vector<std::string> reasons;
  // The nodes that it can run, by index and in topological order, as few sets that may each be
  // replaced with one node: no path leaves a set and comes back to it, and none goes from a set to
  // an earlier one. What enters or leaves a set is a tensor of numbers or truth values of 8 bits
  // and more, and what enters has a rank.
  std::vector<std::vector<int>> sets;
};

// Imports each node by itself, with the types that are declared for its inputs where they come from
// a node that cannot be run; values between sets need declared types too. A node whose structure
// depends on values of a run is left out. Local functions are not inlined: a call is one node.
// Parameters and errors are those of Model::from_bytes, but for faults of single nodes.
NodeSupport supported_nodes(std::string_view bytes, const std::string& name = "model",
                            const NamedTensors& weights = {});

}  // namespace redfuser
