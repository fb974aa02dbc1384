// The pipelines of passes.
#pragma once

#include <vector>

#include "passes/pass_log.h"

namespace redfuser::passes {

// Both verify the graph after every pass that changed it and log the change. Node and value numbers
// change.

// For files and for execution: passes run until none changes anything (at most eight rounds).
void optimize(ir::Graph& graph, std::vector<PassRecord>* log = nullptr);
// For execution only, after optimize(): replaces constants. Each pass runs once.
void optimize_for_execution(ir::Graph& graph, std::vector<PassRecord>* log = nullptr);

}  // namespace redfuser::passes
