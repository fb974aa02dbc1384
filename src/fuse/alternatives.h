// Other divisions of a region into steps: the same outputs from the same reads.
#pragma once

#include <string>
#include <vector>

#include "fuse/plan.h"

namespace redfuser::fuse {

// The nodes of a step and those whose results it computes from their indices, in the graph's order.
std::vector<ir::NodeId> region_nodes(const ir::Graph& graph, const Step& step);

struct Alternative {
  std::string name;  // "unfused", or which products are steps of their own
  // In order; they write values of the region beside its outputs. An output may be an alias of a
  // value that one of them writes, and that no other output is.
  std::vector<Step> steps;
};

// The divisions of the nodes of a CascadeStep, which is of a plan of `graph`: regions without its
// contractions, or without all of them but two. Without contractions: every operator a step of its
// own; the regions of a division have divisions of their own. Divisions that come out alike are
// given once. Values have the numbers, nodes the ids of `graph`. The graph's pool takes new
// expressions, so that one that is shared has to be cloned first.
std::vector<Alternative> alternatives(const ir::Graph& graph, const Step& step);

}  // namespace redfuser::fuse
