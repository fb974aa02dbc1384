#include "ep/ort_graph.h"

namespace redfuser::ep {
namespace {

template <typename Element, typename Object, typename Count, typename Get>
std::vector<const Element*> list(const Api& api, const Object& object, Count OrtApi::*count,
                                 Get OrtApi::*get) {
  std::vector<const Element*> elements(answer<size_t>(api, count, &object));
  if (!elements.empty()) {
    check(api, (api.ort->*get)(&object, elements.data(), elements.size()));
  }
  return elements;
}

}  // namespace

std::vector<const OrtNode*> nodes_of(const Api& api, const OrtGraph& graph) {
  return list<OrtNode>(api, graph, &OrtApi::Graph_GetNumNodes, &OrtApi::Graph_GetNodes);
}

std::vector<const OrtValueInfo*> inputs_of(const Api& api, const OrtGraph& graph) {
  return list<OrtValueInfo>(api, graph, &OrtApi::Graph_GetNumInputs, &OrtApi::Graph_GetInputs);
}

std::vector<const OrtValueInfo*> outputs_of(const Api& api, const OrtGraph& graph) {
  return list<OrtValueInfo>(api, graph, &OrtApi::Graph_GetNumOutputs, &OrtApi::Graph_GetOutputs);
}

std::vector<const OrtValueInfo*> initializers_of(const Api& api, const OrtGraph& graph) {
  return list<OrtValueInfo>(api, graph, &OrtApi::Graph_GetNumInitializers,
                            &OrtApi::Graph_GetInitializers);
}

std::vector<const OrtValueInfo*> inputs_of(const Api& api, const OrtNode& node) {
  return list<OrtValueInfo>(api, node, &OrtApi::Node_GetNumInputs, &OrtApi::Node_GetInputs);
}

std::vector<const OrtValueInfo*> outputs_of(const Api& api, const OrtNode& node) {
  return list<OrtValueInfo>(api, node, &OrtApi::Node_GetNumOutputs, &OrtApi::Node_GetOutputs);
}

std::vector<const OrtValueInfo*> captured_by(const Api& api, const OrtNode& node) {
  return list<OrtValueInfo>(api, node, &OrtApi::Node_GetNumImplicitInputs,
                            &OrtApi::Node_GetImplicitInputs);
}

std::vector<const OrtOpAttr*> attributes_of(const Api& api, const OrtNode& node) {
  return list<OrtOpAttr>(api, node, &OrtApi::Node_GetNumAttributes, &OrtApi::Node_GetAttributes);
}

std::vector<NamedSubgraph> subgraphs_of(const Api& api, const OrtNode& node) {
  const auto count = answer<size_t>(api, &OrtApi::Node_GetNumSubgraphs, &node);
  std::vector<const OrtGraph*> graphs(count);
  std::vector<const char*> names(count);
  if (count > 0) {
    check(api, api.ort->Node_GetSubgraphs(&node, graphs.data(), count, names.data()));
  }
  std::vector<NamedSubgraph> subgraphs;
  for (size_t i = 0; i < count; ++i) subgraphs.push_back({names[i], graphs[i]});
  return subgraphs;
}

const OrtNode* parent_of(const Api& api, const OrtGraph& graph) {
  return answer<const OrtNode*>(api, &OrtApi::Graph_GetParentNode, &graph);
}

std::vector<OperatorSet> operator_sets_of(const Api& api, const OrtGraph& graph) {
  const auto count = answer<size_t>(api, &OrtApi::Graph_GetNumOperatorSets, &graph);
  std::vector<const char*> domains(count);
  std::vector<int64_t> versions(count);
  if (count > 0) {
    check(api, api.ort->Graph_GetOperatorSets(&graph, domains.data(), versions.data(), count));
  }
  std::vector<OperatorSet> sets;
  for (size_t i = 0; i < count; ++i) sets.push_back({domains[i], versions[i]});
  return sets;
}

std::string model_path(const Api& api, const OrtGraph& graph) {
  return answer<const char*>(api, &OrtApi::Graph_GetModelPath, &graph);
}

std::string name_of(const Api& api, const OrtValueInfo* value) {
  return value == nullptr ? "" : answer<const char*>(api, &OrtApi::GetValueInfoName, value);
}

std::vector<std::string> names_of(const Api& api, const std::vector<const OrtValueInfo*>& values) {
  std::vector<std::string> names;
  for (const OrtValueInfo* value : values) names.push_back(name_of(api, value));
  return names;
}

}  // namespace redfuser::ep
