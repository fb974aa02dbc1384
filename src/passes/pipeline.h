// The list of passes, in order.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"

namespace redfuser::passes {

// One line of the log: a pass that changed the graph.
struct PassRecord {
  std::string name;
  int nodes_before = 0, nodes_after = 0;
};

// Runs the passes until none changes anything (at most eight rounds) and verifies the graph after
// each. Node and value numbers change.
void optimize(ir::Graph& graph, std::vector<PassRecord>* log = nullptr);

}  // namespace redfuser::passes
