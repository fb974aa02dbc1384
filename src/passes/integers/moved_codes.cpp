#include "passes/integers/moved_codes.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "ops/graph_editor.h"
#include "ops/lowering.h"
#include "ops/op_def.h"
#include "passes/integers/integer_form.h"
#include "passes/integers/pointwise.h"
#include "passes/rewriting/rewrite.h"

namespace redfuser::passes {
namespace {

class CodeMover {
 public:
  explicit CodeMover(ir::Graph& graph)
      : graph_(graph), editor_(graph), consumers_(graph.consumers()) {}

  bool run() {
    const size_t nodes = graph_.nodes.size();
    for (size_t n = 0; n < nodes; ++n) visit(static_cast<ir::NodeId>(n));
    if (editor_.empty()) return false;
    editor_.place();
    std::vector<char> dead(graph_.nodes.size());
    for (const ir::ValueId value : unread_) dead[static_cast<size_t>(value_of(value).producer)] = 1;
    erase_nodes(graph_, dead);
    return true;
  }

 private:
  const ir::Value& value_of(ir::ValueId id) { return graph_.values[static_cast<size_t>(id)]; }

  void visit(ir::NodeId id) {
    const ir::Node function = graph_.nodes[static_cast<size_t>(id)];
    const ir::ValueId floats = argument_of(function);
    if (floats == ir::kAbsent || !is_read_once(floats)) return;
    ir::Node move = graph_.nodes[static_cast<size_t>(value_of(floats).producer)];
    const std::set<ir::ValueId> sources = sources_of(move);
    if (sources.empty() || !gains(sources, floats)) return;
    for (const ir::ValueId source : sources) {
      ir::Node earlier = function;
      std::replace(earlier.inputs.begin(), earlier.inputs.end(), floats, source);
      const std::string name =
          fmt::format("{}/{}", value_of(function.outputs[0]).name, graph_.values.size());
      const ir::ValueId codes = editor_.add(id, std::move(earlier), name);
      std::replace(move.inputs.begin(), move.inputs.end(), source, codes);
    }
    move.outputs = function.outputs;
    unread_.push_back(floats);
    graph_.nodes[static_cast<size_t>(id)] = std::move(move);
  }

  // What the node computes bytes from, element by element; kAbsent for other nodes.
  ir::ValueId argument_of(const ir::Node& node) {
    if (node.def == nullptr || node.def->lower == nullptr || node.outputs.size() != 1) {
      return ir::kAbsent;
    }
    const ir::ValueId output = node.outputs[0];
    if (!is_byte(value_of(output).dtype) || value_of(output).is_constant()) return ir::kAbsent;
    const std::vector<ir::Expr> axes = ops::shared_index(graph_, output);
    ops::Lowering lowering(graph_, [output](ir::ValueId v) { return v == output; });
    const ir::ValueId floats = read_value(lowering.element(output, axes), axes);
    if (floats == ir::kAbsent || !is_function_of(graph_, node, floats)) return ir::kAbsent;
    const ir::Value& value = value_of(floats);
    const bool produced = value.producer >= 0 && value.dtype == DType::Float32;
    return produced && value.shape == value_of(output).shape ? floats : ir::kAbsent;
  }

  bool is_read_once(ir::ValueId id) {
    const auto& outputs = graph_.outputs;
    return consumers_[static_cast<size_t>(id)].size() == 1 &&
           std::find(outputs.begin(), outputs.end(), id) == outputs.end();
  }

  // The inputs that the node's elements are elements of; empty for nodes that compute others.
  std::set<ir::ValueId> sources_of(const ir::Node& node) {
    if (node.def == nullptr || node.def->lower == nullptr || node.outputs.size() != 1) return {};
    const ir::ValueId output = node.outputs[0];
    ops::Lowering lowering(graph_, [output](ir::ValueId v) { return v == output; });
    std::set<ir::ValueId> sources;
    const ir::Expr element = lowering.element(output, ops::shared_index(graph_, output));
    return add_sources(element, node, sources) ? sources : std::set<ir::ValueId>();
  }

  // A read, or a choice between reads by their place.
  bool add_sources(ir::Expr e, const ir::Node& node, std::set<ir::ValueId>& sources) {
    if (e->op == ir::ExprOp::Select) {
      return !reads(e->args[0]) && add_sources(e->args[1], node, sources) &&
             add_sources(e->args[2], node, sources);
    }
    if (e->op != ir::ExprOp::Read || e->integer < 0) return false;
    const auto id = static_cast<ir::ValueId>(e->integer);
    const bool input = std::find(node.inputs.begin(), node.inputs.end(), id) != node.inputs.end();
    const bool by_place = std::none_of(e->args.begin(), e->args.end(), reads);
    if (!input || !by_place || value_of(id).producer < 0) return false;
    sources.insert(id);
    return true;
  }

  static bool reads(ir::Expr e) {
    bool any = false;
    ir::visit(e, [&](ir::Expr part) { any |= part->op == ir::ExprOp::Read; });
    return any;
  }

  bool gains(const std::set<ir::ValueId>& sources, ir::ValueId moved) {
    int64_t elements = 0;
    for (const ir::ValueId source : sources) elements += typical_count(value_of(source).shape);
    return elements <= typical_count(value_of(moved).shape);
  }

  ir::Graph& graph_;
  ops::GraphEditor editor_;
  const std::vector<std::vector<ir::NodeId>> consumers_;
  std::vector<ir::ValueId> unread_;  // by the moves' new places
};

}  // namespace

bool moved_codes(ir::Graph& graph) {
  bool any = false;
  while (CodeMover(graph).run()) any = true;
  return any;
}

}  // namespace redfuser::passes
