// The positions of elements that are nonzero wherever they are: functions of the position's number.
//     NonZero(x)[d, k] = ⌊k / (n(d+1)·…)⌋ mod n(d)          x of sizes n, nonzero everywhere
// Exporters write the indices of an axis so, of as many ones as the axis is long.
#include <algorithm>
#include <utility>

#include "ir/ranges.h"
#include "ops/graph_editor.h"
#include "ops/infer.h"
#include "ops/lowering.h"
#include "ops/op_def.h"
#include "passes/passes.h"
#include "passes/rewriting/rewrite.h"

namespace redfuser::passes {
namespace {

class PositionsOfOnes {
 public:
  explicit PositionsOfOnes(ir::Graph& graph) : graph_(graph), editor_(graph) {}

  bool run() {
    const size_t nodes = graph_.nodes.size();
    for (size_t n = 0; n < nodes; ++n) {
      const ir::Node node = graph_.nodes[n];
      if (node.op != "NonZero" || !node.domain.empty() || !nonzero_everywhere(node.inputs[0])) {
        continue;
      }
      ops::Replacement to(graph_, editor_, static_cast<ir::NodeId>(n), "position");
      replaced_.emplace_back(node.outputs[0], positions(node.inputs[0], to));
    }
    if (replaced_.empty()) return false;
    editor_.place();
    Rewrite rewrite(graph_);
    bool changed = false;
    for (const auto& [from, to] : replaced_) changed |= rewrite.replace(from, to);
    rewrite.apply();
    infer_readers();
    eliminate_dead(graph_);
    return changed;
  }

 private:
  const ir::Value& value_of(ir::ValueId id) const { return graph_.values[static_cast<size_t>(id)]; }

  // By the expression of an element. A scalar stays: its positions have no axis.
  bool nonzero_everywhere(ir::ValueId id) {
    const ir::Value& value = value_of(id);
    if (value.shape.empty() || !value.indexed) return false;
    ops::Lowering lowering(graph_,
                           [this](ir::ValueId inlined) { return value_of(inlined).indexed; });
    const ir::Expr element = lowering.element(id, ops::shared_axes(graph_, id));
    if (element->is_constant()) return !element->is_constant(0);
    if (element->dtype != DType::Int64 || element->has_read) return false;
    return ir::proved_less(*graph_.pool, graph_.pool->integer(0), element);
  }

  ir::ValueId positions(ir::ValueId id, ops::Replacement& to) {
    const int64_t rank = static_cast<int64_t>(value_of(id).shape.size());
    const ir::ValueId sizes = to.add("Shape", {id});
    ir::ValueId count = size(sizes, 0, to);
    for (int64_t d = 1; d < rank; ++d) count = to.add("Mul", {count, size(sizes, d, to)});
    const ir::ValueId number = to.add("Range", {to.integers({}, {0}), count, to.integers({}, {1})});
    std::vector<ir::ValueId> rows(static_cast<size_t>(rank));
    ir::ValueId rest = number;
    for (int64_t d = rank - 1; d >= 0; --d) {
      const ir::ValueId index = d > 0 ? to.add("Mod", {rest, size(sizes, d, to)}) : rest;
      if (d > 0) rest = to.add("Div", {rest, size(sizes, d, to)});
      rows[static_cast<size_t>(d)] = to.add("Unsqueeze", {index, to.list({0})});
    }
    return rank == 1 ? rows[0] : to.add("Concat", rows, {{"axis", int64_t{0}}});
  }

  static ir::ValueId size(ir::ValueId sizes, int64_t dim, ops::Replacement& to) {
    return to.add("Gather", {sizes, to.integers({}, {dim})}, {{"axis", int64_t{0}}});
  }

  // A function of index functions alone is an index function.
  void infer_readers() {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const ir::Node& node = graph_.nodes[n];
      const bool reads = std::any_of(
          node.inputs.begin(), node.inputs.end(),
          [&](ir::ValueId input) { return input != ir::kAbsent && value_of(input).indexed; });
      if (reads && node.def != nullptr) ops::infer_indexed(graph_, static_cast<ir::NodeId>(n));
    }
  }

  ir::Graph& graph_;
  ops::GraphEditor editor_;
  std::vector<std::pair<ir::ValueId, ir::ValueId>> replaced_;
};

}  // namespace

bool nonzero_indices(ir::Graph& graph) { return PositionsOfOnes(graph).run(); }

}  // namespace redfuser::passes
