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

// Whether a step may have divisions, by the step alone: a cascade, another reduction, or a map
// whose elements read a value at several positions, of more than one node.
bool may_divide(const ir::Graph& graph, const Step& step);

// The divisions of the nodes of a step that may_divide(), of a plan of `graph`: regions without its
// contractions, or without all of them but two; nodes that read an operand at several positions,
// as interpolations do, as steps of their own, so that the operand is computed once. A reduction
// without contractions: every operator a step of its own. The regions of a division have divisions
// of their own. Divisions that come out alike are given once. Values have the numbers, nodes the
// ids of `graph`. The graph's pool takes new expressions, so that one that is shared has to be
// cloned first.
std::vector<Alternative> alternatives(const ir::Graph& graph, const Step& step);

}  // namespace redfuser::fuse
