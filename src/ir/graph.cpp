#include "ir/graph.h"

#include <fmt/format.h>

#include <unordered_set>

#include "base/error.h"

namespace redfuser::ir {

ValueId Graph::add_value(std::string name, DType dtype) {
  Value value;
  value.name = std::move(name);
  value.dtype = dtype;
  values.push_back(std::move(value));
  return static_cast<ValueId>(values.size() - 1);
}

std::vector<std::vector<NodeId>> Graph::consumers() const {
  std::vector<std::vector<NodeId>> result(values.size());
  for (size_t node = 0; node < nodes.size(); ++node) {
    for (ValueId input : nodes[node].inputs) {
      if (input == kAbsent) continue;
      auto& readers = result[static_cast<size_t>(input)];
      if (readers.empty() || readers.back() != static_cast<NodeId>(node)) {
        readers.push_back(static_cast<NodeId>(node));
      }
    }
  }
  return result;
}

Graph clone(const Graph& graph) {
  Graph copy = graph;
  copy.pool = std::make_shared<ExprPool>(graph.pool);
  return copy;
}

void verify(const Graph& graph) {
  std::unordered_set<std::string> names;
  const auto count = static_cast<ValueId>(graph.values.size());
  std::vector<char> available(graph.values.size());
  for (ValueId id = 0; id < count; ++id) {
    const Value& value = graph.values[static_cast<size_t>(id)];
    available[static_cast<size_t>(id)] = value.producer < 0;
    RF_CHECK(names.insert(value.name).second, "two values are named \"{}\"", value.name);
  }
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    for (ValueId input : node.inputs) {
      if (input == kAbsent) continue;
      RF_CHECK(input >= 0 && input < count, "node \"{}\" reads value {} of {}", node.name, input,
               count);
      RF_CHECK(available[static_cast<size_t>(input)], "node \"{}\" reads \"{}\" before it exists",
               node.name, graph.values[static_cast<size_t>(input)].name);
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId output = node.outputs[i];
      if (output == kAbsent) continue;
      const Value& value = graph.values[static_cast<size_t>(output)];
      RF_CHECK(
          value.producer == static_cast<NodeId>(n) && value.output_index == static_cast<int>(i),
          "value \"{}\" does not name its producer \"{}\"", value.name, node.name);
      RF_CHECK(value.dtype != DType::Undefined, "value \"{}\" has no dtype", value.name);
      for (Expr size : value.shape) RF_CHECK(size, "value \"{}\" has no size", value.name);
      available[static_cast<size_t>(output)] = 1;
    }
  }
  for (ValueId output : graph.outputs) {
    RF_CHECK(available[static_cast<size_t>(output)], "output \"{}\" is never computed",
             graph.values[static_cast<size_t>(output)].name);
  }
}

namespace {

std::string type_text(const Graph& graph, const Value& value) {
  std::string dims;
  for (Expr size : value.shape) {
    dims += (dims.empty() ? "" : ",") + (size ? to_string(*graph.pool, size) : "?");
  }
  return fmt::format("{}[{}]", name_of(value.dtype), dims);
}

}  // namespace

std::string to_string(const Graph& graph) {
  std::string text = fmt::format("graph \"{}\"\n", graph.name);
  for (ValueId id : graph.inputs) {
    const Value& value = graph.values[static_cast<size_t>(id)];
    text += fmt::format("  input %{} {} \"{}\"\n", id, type_text(graph, value), value.name);
  }
  for (const Node& node : graph.nodes) {
    std::string outputs, inputs;
    for (ValueId id : node.outputs) {
      if (!outputs.empty()) outputs += ", ";
      outputs +=
          id == kAbsent
              ? std::string("_")
              : fmt::format("%{} {}", id, type_text(graph, graph.values[static_cast<size_t>(id)]));
    }
    for (ValueId id : node.inputs) {
      if (!inputs.empty()) inputs += ", ";
      inputs += id == kAbsent ? std::string("_") : fmt::format("%{}", id);
    }
    text += fmt::format("  {} = {}({})  # \"{}\"\n", outputs, node.op, inputs, node.name);
  }
  for (ValueId id : graph.outputs) {
    text += fmt::format("  output %{} \"{}\"\n", id, graph.values[static_cast<size_t>(id)].name);
  }
  return text;
}

}  // namespace redfuser::ir
