// Graphs repeat themselves, layer after layer: what growing a region found is found again where the
// surroundings are the same. Internal to src/fuse.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fuse/node_facts.h"

namespace redfuser::fuse {

// What accepted regions hold: nodes computed in one, and values that one reads, which must stay
// available.
struct Claimed {
  std::set<ir::NodeId> nodes;
  std::set<ir::ValueId> pinned;
};

// A region, and what growing it looked at.
struct RegionTrace {
  ir::NodeId seed = -1, last_reduction = -1;
  std::set<ir::NodeId> owned, shared;
  std::vector<std::pair<ir::NodeId, std::string>> refused;
  std::map<ir::NodeId, bool> consulted;  // nodes, and whether they could be taken
  std::set<ir::ValueId> pinned;          // results of these that regions before it read
  std::string fingerprint;               // of its cascade
};

// `growth` moved to where it would grow from `seed`, if the nodes that it looked at have images
// there: the same operators on values of the same types, sizes and small contents, with the same
// readers, as free to be taken, in the same order.
std::optional<RegionTrace> replay_at(ir::NodeId seed, const RegionTrace& growth,
                                     const NodeFacts& facts, const Claimed& taken);

}  // namespace redfuser::fuse
