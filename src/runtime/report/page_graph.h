// The two graphs of a report's page.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/program/compiled_program.h"

namespace redfuser::runtime {

enum class PageRole { Node, Input, Output };

struct PageNode {
  PageRole role = PageRole::Node;
  std::string title, name;  // an operator or a step's kind; the user's name
  std::string detail;       // the types of its outputs
  std::string shape_of;     // equal for nodes that may be equal layers' parts
  int number = -1;          // of the file's node, or of the step
  bool timed = false;       // its box has room for a time
};

struct PageGraph {
  std::vector<PageNode> nodes;             // in a topological order
  std::vector<std::pair<int, int>> edges;  // each pair once
};

// The nodes of the file without its constants, and the steps of the plan without aliases.
PageGraph file_graph(const CompiledProgram& program);
PageGraph step_graph(const CompiledProgram& program);

}  // namespace redfuser::runtime
