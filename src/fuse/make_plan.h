// From an optimised graph to a plan.
#pragma once

#include <memory>

#include "fuse/plan.h"
#include "fuse/regions.h"

namespace redfuser::fuse {

struct PlanOptions {
  bool fuse = true;               // false: every operator is a step of its own, the reference
  bool certify = true;            // run every fusion against its unfused body first
  std::set<ir::NodeId> separate;  // nodes that no region takes in
  std::set<ir::NodeId> alone;     // nodes that are steps of their own
};

// Steps for every value that the graph's outputs need, in topological order. The plan's report
// covers the fused regions; `regions`, if given, receives them for dumps.
Plan make_plan(std::shared_ptr<const ir::Graph> graph, const PlanOptions& options,
               Regions* regions = nullptr);

}  // namespace redfuser::fuse
