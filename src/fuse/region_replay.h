// Graphs repeat from layer to layer: the growth of a region is replayed where the surrounding nodes
// are equal. Internal to src/fuse.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fuse/node_facts.h"

namespace redfuser::fuse {

// Nodes of accepted regions, and values that these read and that must stay available.
struct Claimed {
  std::set<ir::NodeId> nodes;
  std::set<ir::ValueId> pinned;
};

// A region and the nodes that its growth examined.
struct RegionTrace {
  ir::NodeId seed = -1, last_reduction = -1;
  std::set<ir::NodeId> owned, shared;
  std::vector<std::pair<ir::NodeId, std::string>> refused;
  std::map<ir::NodeId, bool> consulted;  // nodes, and whether they could be taken
  std::set<ir::ValueId> pinned;          // their results that earlier regions read
  std::string fingerprint;               // of its cascade
};

// `growth` mapped to the seed `seed`. nullopt unless every examined node has an image there: the
// same operator on values of the same types, sizes and small contents, with the same readers, in
// the same order, and equally free to be taken.
std::optional<RegionTrace> replay_at(ir::NodeId seed, const RegionTrace& growth,
                                     const NodeFacts& facts, const Claimed& taken);

}  // namespace redfuser::fuse
