// The part of a graph that a region's nodes use, as a graph of its own.
#pragma once

#include <memory>
#include <vector>

#include "fuse/plan.h"

namespace redfuser::cpu {

// Its size is that of the region, not of the graph.
struct RegionGraph {
  std::shared_ptr<const ir::Graph> graph;  // its pool extends the whole graph's, and takes new
                                           // expressions
  fuse::Step step;                         // nodes, reads and writes by the numbers of `graph`
  std::vector<ir::ValueId> values;         // the numbers in the whole graph
};

// `step` is of a plan of `graph`. The values that the region uses and the graph's inputs, in the
// order of the graph.
RegionGraph region_graph(const ir::Graph& graph, const fuse::Step& step);

}  // namespace redfuser::cpu
