#include "onnx/export/emit_function.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "onnx/check/node_order.h"
#include "onnx/export/convex_regions.h"
#include "onnx/export/function_builder.h"
#include "onnx/export/normalise.h"
#include "onnx/functions/functions.h"
#include "onnx/proto/value_types.h"

namespace redfuser::onnx {
namespace {

constexpr int kFunctionIrVersion = 8;  // the first with model-local functions

// Nodes whose results are expressions of sizes.
std::vector<bool> size_arithmetic(const LoadedModel& model, const std::vector<int>& nodes) {
  std::unordered_set<std::string> known;
  for (const ir::Value& value : model.graph.values) {
    if (value.has_elements) known.insert(value.name);
  }
  std::vector<bool> result;
  for (const int index : nodes) {
    const auto& outputs = model.proto->graph().node(index).output();
    result.push_back(std::all_of(outputs.begin(), outputs.end(), [&](const std::string& name) {
      return name.empty() || known.count(name);
    }));
  }
  return result;
}

NodeGraph reader_graph(const LoadedModel& model, const std::vector<int>& nodes) {
  const ::onnx::GraphProto& main = model.proto->graph();
  std::unordered_map<std::string, int> producers;
  for (size_t n = 0; n < nodes.size(); ++n) {
    for (const auto& name : main.node(nodes[n]).output()) {
      if (!name.empty()) producers[name] = static_cast<int>(n);
    }
  }
  NodeGraph graph;
  graph.readers.resize(nodes.size());
  graph.cheap = size_arithmetic(model, nodes);
  for (size_t n = 0; n < nodes.size(); ++n) {
    std::set<int> sources;
    for (const auto& name : main.node(nodes[n]).input()) {
      const auto producer = producers.find(name);
      if (producer != producers.end()) sources.insert(producer->second);
    }
    for (const int s : sources)
      graph.readers[static_cast<size_t>(s)].push_back(static_cast<int>(n));
  }
  return graph;
}

// Positions within `nodes` of each region's nodes. Constants are assigned to their readers later; a
// call of an existing region function stays as it is.
std::vector<std::vector<int>> region_positions(const ::onnx::GraphProto& main,
                                               const std::vector<int>& nodes,
                                               const std::vector<ExportRegion>& regions) {
  std::unordered_map<int, int> positions;
  for (size_t n = 0; n < nodes.size(); ++n) {
    if (main.node(nodes[n]).op_type() != "Constant") positions[nodes[n]] = static_cast<int>(n);
  }
  std::vector<std::vector<int>> result;
  for (const ExportRegion& region : regions) {
    std::set<int> found;
    for (const int source : region.sources) {
      const auto position = positions.find(source);
      if (position != positions.end()) found.insert(position->second);
    }
    result.emplace_back(found.begin(), found.end());
    if (found.size() == 1 &&
        main.node(nodes[static_cast<size_t>(*found.begin())]).domain() == kRegionDomain) {
      result.back().clear();
    }
  }
  return result;
}

// A Constant that only one region reads moves into it.
void adopt_constants(const ::onnx::GraphProto& main, const std::vector<int>& nodes,
                     const NodeGraph& graph, std::vector<int>& group) {
  std::unordered_set<std::string> outputs;
  for (const auto& output : main.output()) outputs.insert(output.name());
  for (size_t n = 0; n < nodes.size(); ++n) {
    const ::onnx::NodeProto& node = main.node(nodes[n]);
    if (node.op_type() != "Constant" || graph.readers[n].empty()) continue;
    const int first = group[static_cast<size_t>(graph.readers[n].front())];
    const bool same = std::all_of(graph.readers[n].begin(), graph.readers[n].end(),
                                  [&](int r) { return group[static_cast<size_t>(r)] == first; });
    if (same && !outputs.count(node.output(0))) group[n] = first;
  }
}

// One note for each region and reason.
void note_dropped(const ::onnx::GraphProto& main, const std::vector<int>& nodes,
                  const std::vector<ExportRegion>& regions, const Grouping& grouping,
                  ExportResult& result) {
  std::map<std::pair<int, bool>, std::vector<std::string>> names;
  for (const auto& dropped : grouping.dropped) {
    const int index = nodes[static_cast<size_t>(dropped.node)];
    names[{dropped.region, dropped.shared}].push_back(node_name(main.node(index), index));
  }
  constexpr size_t kShown = 4;
  for (const auto& [key, left_out] : names) {
    std::string list;
    for (size_t i = 0; i < std::min(left_out.size(), kShown); ++i) {
      list += fmt::format("{}\"{}\"", i == 0 ? "" : ", ", left_out[i]);
    }
    if (left_out.size() > kShown) list += fmt::format(" and {} more", left_out.size() - kShown);
    result.notes.push_back(
        fmt::format("{} leaves out {}: {}", regions[static_cast<size_t>(key.first)].name, list,
                    key.second ? "in an earlier region"
                               : "with them it would depend on itself through nodes outside"));
  }
}

// The file without nodes and initializers.
::onnx::ModelProto shell_of(const LoadedModel& model) {
  const ::onnx::ModelProto& file = *model.proto;
  ::onnx::ModelProto shell;
  const int64_t newest = ::onnx::Version::IR_VERSION;  // that the checker knows
  shell.set_ir_version(std::clamp<int64_t>(file.ir_version(), kFunctionIrVersion, newest));
  *shell.mutable_opset_import() = file.opset_import();
  shell.set_producer_name(file.producer_name());
  shell.set_producer_version(file.producer_version());
  shell.set_domain(file.domain());
  shell.set_model_version(file.model_version());
  shell.set_doc_string(file.doc_string());
  *shell.mutable_metadata_props() = file.metadata_props();
  *shell.mutable_functions() = file.functions();
  ::onnx::GraphProto& graph = *shell.mutable_graph();
  graph.set_name(file.graph().name().empty() ? "graph" : file.graph().name());
  graph.set_doc_string(file.graph().doc_string());
  *graph.mutable_input() = file.graph().input();
  *graph.mutable_output() = file.graph().output();
  // A file may omit types of outputs, which the checker refuses.
  for (int i = 0; i < graph.output_size(); ++i) {
    const ::onnx::TypeProto& type = graph.output(i).type();
    if (type.tensor_type().has_shape() || is_list_of_maps(type)) continue;
    *graph.mutable_output(i)->mutable_type() =
        type_of(model.graph, model.graph.outputs[static_cast<size_t>(i)]);
  }
  return shell;
}

}  // namespace

OutputModel emit_function(const LoadedModel& model, const PrunedModel& pruned,
                          const std::vector<ExportRegion>& regions, ExportResult& result) {
  const ::onnx::GraphProto& main = model.proto->graph();
  const NodeGraph graph = reader_graph(model, pruned.nodes);
  Grouping grouping = group_regions(graph, region_positions(main, pruned.nodes, regions));
  note_dropped(main, pruned.nodes, regions, grouping, result);
  adopt_constants(main, pruned.nodes, graph, grouping.group);

  OutputModel output{shell_of(model), {}};
  FunctionBuilder builder(model, pruned, regions, grouping.group);
  const std::vector<int> order = grouped_order(graph, grouping.group);
  for (size_t i = 0; i < order.size();) {
    const int g = grouping.group[static_cast<size_t>(order[i])];
    std::vector<int> members;
    do {
      members.push_back(pruned.nodes[static_cast<size_t>(order[i++])]);
    } while (g >= 0 && i < order.size() && grouping.group[static_cast<size_t>(order[i])] == g);
    if (g < 0) {
      *output.proto.mutable_graph()->add_node() = main.node(members[0]);
    } else {
      result.regions.push_back(builder.add(output.proto, g, members));
    }
  }
  builder.finish(output);
  normalise(output.proto, model.path);
  return output;
}

}  // namespace redfuser::onnx
