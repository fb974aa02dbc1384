#include "runtime/report/page_graph.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <set>

#include "onnx/import/file_nodes.h"

namespace redfuser::runtime {
namespace {

std::string type_text(const ir::Graph& graph, ir::ValueId id) {
  const ir::Value& value = graph.values[static_cast<size_t>(id)];
  std::vector<std::string> dims;
  for (const ir::Expr dim : value.shape) dims.push_back(to_string(*graph.pool, dim));
  return fmt::format("{} {}[{}]", value.name, name_of(value.dtype), fmt::join(dims, ","));
}

// Nodes that tell which values they read and write.
template <typename Key>
class GraphMaker {
 public:
  void add(PageNode node, const std::vector<Key>& reads, const std::vector<Key>& writes) {
    const int number = static_cast<int>(graph_.nodes.size());
    for (const Key& value : writes) writer_.emplace(value, number);
    reads_.push_back(reads);
    graph_.nodes.push_back(std::move(node));
  }

  // What is on a cycle is left out.
  PageGraph sorted() {
    const size_t count = graph_.nodes.size();
    std::vector<std::set<int>> readers(count);
    std::vector<int> open(count, 0);
    for (size_t i = 0; i < count; ++i) {
      for (const Key& value : reads_[i]) {
        const auto writer = writer_.find(value);
        if (writer == writer_.end()) continue;
        if (readers[static_cast<size_t>(writer->second)].insert(static_cast<int>(i)).second) {
          ++open[i];
        }
      }
    }
    std::priority_queue<int, std::vector<int>, std::greater<>> ready;
    for (size_t i = 0; i < count; ++i) {
      if (open[i] == 0) ready.push(static_cast<int>(i));
    }
    PageGraph result;
    std::map<int, int> place;
    while (!ready.empty()) {
      const int next = ready.top();
      ready.pop();
      place[next] = static_cast<int>(result.nodes.size());
      result.nodes.push_back(std::move(graph_.nodes[static_cast<size_t>(next)]));
      for (const int reader : readers[static_cast<size_t>(next)]) {
        if (--open[static_cast<size_t>(reader)] == 0) ready.push(reader);
      }
    }
    for (const auto& [old, now] : place) {
      for (const int reader : readers[static_cast<size_t>(old)]) {
        const auto to = place.find(reader);
        if (to != place.end()) result.edges.emplace_back(now, to->second);
      }
    }
    return result;
  }

 private:
  PageGraph graph_;
  std::vector<std::vector<Key>> reads_;
  std::map<Key, int> writer_;
};

}  // namespace

PageGraph file_graph(const CompiledProgram& program) {
  const onnx::LoadedModel& model = *program.model;
  std::map<std::string, std::string> types;
  for (size_t i = 0; i < model.graph.values.size(); ++i) {
    types[model.graph.values[i].name] = type_text(model.graph, static_cast<ir::ValueId>(i));
  }
  const auto detail = [&](const std::vector<std::string>& values) {
    std::vector<std::string> texts;
    for (const std::string& value : values) {
      const auto type = types.find(value);
      texts.push_back(type == types.end() ? value : type->second);
    }
    return fmt::format("{}", fmt::join(texts, "\n"));
  };
  GraphMaker<std::string> maker;
  for (const ValueInfo& info : model.inputs) {
    maker.add({PageRole::Input, "input", info.name, detail({info.name}), "input"}, {}, {info.name});
  }
  const std::vector<onnx::FileNode> nodes = onnx::file_nodes(model);
  for (size_t i = 0; i < nodes.size(); ++i) {
    const onnx::FileNode& node = nodes[i];
    if (node.op == "Constant") continue;
    maker.add({PageRole::Node, node.op, node.name, detail(node.outputs),
               fmt::format("{}/{}", node.op, node.inputs.size()), static_cast<int>(i)},
              node.inputs, node.outputs);
  }
  for (const ValueInfo& info : model.outputs) {
    maker.add({PageRole::Output, "output", info.name, detail({info.name}), "output"}, {info.name},
              {});
  }
  return maker.sorted();
}

PageGraph step_graph(const CompiledProgram& program) {
  const ir::Graph& graph = program.graph();
  const auto detail = [&](const std::vector<ir::ValueId>& values) {
    std::vector<std::string> texts;
    for (const ir::ValueId value : values) texts.push_back(type_text(graph, value));
    return fmt::format("{}", fmt::join(texts, "\n"));
  };
  const auto roots = [&](const std::vector<ir::ValueId>& values) {
    std::vector<ir::ValueId> result;
    for (const ir::ValueId value : values) result.push_back(program.plan.root(value));
    return result;
  };
  GraphMaker<ir::ValueId> maker;
  for (const ir::ValueId id : graph.inputs) {
    const std::string& name = graph.values[static_cast<size_t>(id)].name;
    maker.add({PageRole::Input, "input", name, detail({id}), "input"}, {}, {id});
  }
  for (size_t i = 0; i < program.plan.steps.size(); ++i) {
    const fuse::Step& step = program.plan.steps[i];
    if (std::holds_alternative<fuse::AliasStep>(step.kind)) continue;
    const StepInfo& info = program.steps[i];
    std::vector<std::string> ops;
    for (const ir::NodeId node : step.nodes) {
      ops.push_back(graph.nodes[static_cast<size_t>(node)].op);
    }
    const auto* opaque = std::get_if<fuse::OpaqueStep>(&step.kind);
    const std::string title =
        opaque == nullptr ? info.kind : graph.nodes[static_cast<size_t>(opaque->node)].op;
    maker.add({PageRole::Node, title, info.label, detail(step.writes),
               fmt::format("{}/{}", info.kind, fmt::join(ops, ",")), static_cast<int>(i), true},
              roots(step.reads), step.writes);
  }
  for (const ir::ValueId id : graph.outputs) {
    const std::string& name = graph.values[static_cast<size_t>(id)].name;
    maker.add({PageRole::Output, "output", name, detail({id}), "output"}, {program.plan.root(id)},
              {});
  }
  return maker.sorted();
}

}  // namespace redfuser::runtime
