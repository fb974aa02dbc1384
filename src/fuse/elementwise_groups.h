// Groups nodes outside of regions into maps, products and opaque steps with their epilogues,
// reductions and aliases; internal to src/fuse.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "fuse/node_facts.h"
#include "fuse/plan.h"
#include "fuse/regions.h"

namespace redfuser::fuse {

// Producers and users of each value, given the regions.
class Demand {
 public:
  // `alone`: nodes that are steps of their own.
  Demand(const NodeFacts& facts, const std::vector<Region>& regions,
         const std::set<ir::NodeId>& alone);

  bool needed(ir::ValueId value) const { return needed_.count(value) > 0; }
  int region_of(ir::NodeId node) const;  // -1: none
  bool alone(ir::NodeId node) const { return alone_.count(node) > 0; }
  // True if every use of the node's outputs is by a node in `members`.
  bool used_only_by(ir::NodeId node, const std::set<ir::NodeId>& members) const;

 private:
  void need(ir::ValueId value);

  const NodeFacts& facts_;
  const std::vector<Region>& regions_;
  const std::set<ir::NodeId>& alone_;
  std::map<ir::NodeId, int> region_of_;
  // The latter: read by a region, by a node whose sizes they decide, or a graph output.
  std::set<ir::ValueId> needed_, outside_uses_;
  std::map<ir::ValueId, std::set<ir::NodeId>> users_;
};

// The step that computes `value` by nodes outside of regions. With `fuse` it takes in producers
// that only it uses, also one without a lowering whose kernel takes what follows.
Step make_group(const NodeFacts& facts, const Demand& demand, ir::ValueId value, bool fuse);

// Values that an expression reads.
std::set<ir::ValueId> values_read(ir::Expr body);

}  // namespace redfuser::fuse
