// The file's main graph without nodes that its outputs do not need.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "onnx/import/import.h"

namespace redfuser::onnx {

struct PrunedModel {
  std::vector<int> nodes;  // indices in the file, topological order; folded nodes are left out
  std::map<std::string, Tensor> folded;  // folded values that nodes still read
};

// Folds the nodes whose outputs are all constants in `graph` with at most kMaxFolded elements.
// Outputs of the graph stay with their nodes.
PrunedModel prune(const LoadedModel& model, const ir::Graph& graph);
inline constexpr int64_t kMaxFolded = 1024;

}  // namespace redfuser::onnx
