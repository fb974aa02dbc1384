// The changes of each pass of a pipeline.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace redfuser::passes {

// By operator: the names of its nodes, sorted; a name may repeat.
using NodeList = std::map<std::string, std::vector<std::string>>;
NodeList nodes_of(const ir::Graph& graph);

// A pass that changed the graph. If it removed and added no node, it changed inputs of nodes or
// constants.
struct PassRecord {
  std::string name;
  int nodes_before = 0, nodes_after = 0;
  NodeList removed, added;
};
PassRecord record_of(const std::string& name, const NodeList& before, const NodeList& after);

// A line per pass, and one per operator that it removed (-) or added (+).
std::string to_string(const std::vector<PassRecord>& log);

}  // namespace redfuser::passes
