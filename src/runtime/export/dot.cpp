#include <fmt/ranges.h>

#include <map>

#include "base/error.h"
#include "redfuser/export.h"
#include "runtime/program/compiled_program.h"

namespace redfuser {
namespace {

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '"' || c == '\\') result.push_back('\\');
    result.push_back(c == '\n' ? ' ' : c);
  }
  return result;
}

std::string shape_of(const ir::Graph& graph, const ir::Value& value) {
  std::vector<std::string> dims;
  for (const ir::Expr dim : value.shape) dims.push_back(to_string(*graph.pool, dim));
  return fmt::format("{}[{}]", name_of(value.dtype), fmt::join(dims, ","));
}

class DotWriter {
 public:
  explicit DotWriter(const runtime::CompiledProgram& program)
      : program_(program), graph_(program.graph()) {}

  std::string write() {
    text_ =
        "digraph model {\n"
        "  node [shape=box, style=\"rounded,filled\", fillcolor=white, fontname=Helvetica, "
        "fontsize=10];\n"
        "  edge [fontname=Helvetica, fontsize=8, color=\"#606060\"];\n";
    write_inputs();
    write_regions();
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (region_of_.count(static_cast<ir::NodeId>(i)) == 0)
        write_node(static_cast<ir::NodeId>(i), "  ");
    }
    write_edges();
    return text_ + "}\n";
  }

 private:
  const ir::Value& value(ir::ValueId id) const { return graph_.values[static_cast<size_t>(id)]; }

  void write_inputs() {
    for (const ir::ValueId id : graph_.inputs) {
      text_ += fmt::format("  v{} [shape=ellipse, fillcolor=\"#e8e8e8\", label=\"{}\\n{}\"];\n", id,
                           escaped(value(id).name), escaped(shape_of(graph_, value(id))));
    }
  }

  // A node that two regions compute is drawn in the first.
  void write_regions() {
    for (size_t i = 0; i < program_.steps.size(); ++i) {
      if (!program_.steps[i].fused) continue;
      text_ += fmt::format(
          "  subgraph cluster_{} {{\n    label=\"{}\"; style=\"rounded,filled\"; "
          "color=\"#b02020\"; fillcolor=\"#fdeeee\"; fontname=Helvetica; fontsize=11;\n",
          i, escaped(program_.steps[i].kind));
      for (const ir::NodeId node : program_.plan.steps[i].nodes) {
        if (region_of_.emplace(node, i).second) write_node(node, "    ");
      }
      text_ += "  }\n";
    }
  }

  void write_node(ir::NodeId id, const char* indent) {
    const ir::Node& node = graph_.nodes[static_cast<size_t>(id)];
    text_ += fmt::format("{}n{} [label=\"{}\", tooltip=\"{}\"];\n", indent, id, escaped(node.op),
                         escaped(node.name));
  }

  void write_edges() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      for (const ir::ValueId id : graph_.nodes[i].inputs) {
        if (id == ir::kAbsent || value(id).is_constant()) continue;
        const ir::NodeId producer = value(id).producer;
        const std::string from =
            producer >= 0 ? fmt::format("n{}", producer) : fmt::format("v{}", id);
        text_ += fmt::format("  {} -> n{} [label=\"{}\"];\n", from, i,
                             escaped(shape_of(graph_, value(id))));
      }
    }
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      const ir::ValueId id = graph_.outputs[i];
      text_ += fmt::format("  o{} [shape=ellipse, fillcolor=\"#e8e8e8\", label=\"{}\\n{}\"];\n", i,
                           escaped(value(id).name), escaped(shape_of(graph_, value(id))));
      if (value(id).producer >= 0) text_ += fmt::format("  n{} -> o{};\n", value(id).producer, i);
    }
  }

  const runtime::CompiledProgram& program_;
  const ir::Graph& graph_;
  std::map<ir::NodeId, size_t> region_of_;
  std::string text_;
};

}  // namespace

std::string to_dot(const Program& program) { return DotWriter(*program.handle()).write(); }

}  // namespace redfuser
