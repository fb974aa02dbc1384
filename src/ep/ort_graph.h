// ONNX Runtime's view of a graph, read with the errors of its C interface as exceptions.
#pragma once

#include <string>
#include <vector>

#include "ep/api.h"

namespace redfuser::ep {

// Lists as the interface has them: a function for the number, one for the elements. Absent inputs
// and outputs are null.
std::vector<const OrtNode*> nodes_of(const Api& api, const OrtGraph& graph);
std::vector<const OrtValueInfo*> inputs_of(const Api& api, const OrtGraph& graph);
std::vector<const OrtValueInfo*> outputs_of(const Api& api, const OrtGraph& graph);
std::vector<const OrtValueInfo*> initializers_of(const Api& api, const OrtGraph& graph);
std::vector<const OrtValueInfo*> inputs_of(const Api& api, const OrtNode& node);
std::vector<const OrtValueInfo*> outputs_of(const Api& api, const OrtNode& node);
// The values of outer graphs that the node's subgraphs use.
std::vector<const OrtValueInfo*> captured_by(const Api& api, const OrtNode& node);
std::vector<const OrtOpAttr*> attributes_of(const Api& api, const OrtNode& node);

struct NamedSubgraph {
  std::string attribute;
  const OrtGraph* graph;
};
std::vector<NamedSubgraph> subgraphs_of(const Api& api, const OrtNode& node);

// The node that the graph is a subgraph of; null for a main graph.
const OrtNode* parent_of(const Api& api, const OrtGraph& graph);

struct OperatorSet {
  std::string domain;
  int64_t version;
};
std::vector<OperatorSet> operator_sets_of(const Api& api, const OrtGraph& graph);

// The path of the model's file; empty for a model from memory.
std::string model_path(const Api& api, const OrtGraph& graph);
// Empty for a value that is absent.
std::string name_of(const Api& api, const OrtValueInfo* value);
// The name by which a fused node's subgraph and its kernel know a node's inputs or outputs.
std::vector<std::string> names_of(const Api& api, const std::vector<const OrtValueInfo*>& values);

// Calls a function of OrtApi that stores its answer behind the last parameter.
template <typename T, typename Function, typename... Args>
T answer(const Api& api, Function OrtApi::*function, Args... args) {
  T result{};
  check(api, (api.ort->*function)(args..., &result));
  return result;
}

}  // namespace redfuser::ep
