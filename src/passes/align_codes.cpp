// Σ_k a[.., k] · w[k, n] = Σ_k a[.., k] · wᵀ[n, k]: tensor cores read 8-bit operands along k.
#include <fmt/format.h>

#include <map>

#include "ops/graph_editor.h"
#include "ops/lowering.h"
#include "passes/code_products.h"
#include "passes/column_concat.h"
#include "passes/passes.h"
#include "passes/rewriting/rewrite.h"

namespace redfuser::passes {
namespace {

class CodeAligner {
 public:
  explicit CodeAligner(ir::Graph& graph) : graph_(graph), editor_(graph) {}

  bool run() {
    if (!has_codes(graph_)) return false;
    const size_t nodes = graph_.nodes.size();
    for (size_t n = 0; n < nodes; ++n) visit(static_cast<ir::NodeId>(n));
    if (replaced_.empty()) return false;
    editor_.place();
    Rewrite rewrite(graph_);
    for (const auto& [from, to] : replaced_) rewrite.replace(from, to);
    rewrite.apply();
    // The new nodes read the old constants' transposes, not what replaces the constants.
    eliminate_dead(graph_);
    return true;
  }

 private:
  void visit(ir::NodeId node) {
    const auto product = code_product(graph_, node);
    if (!product) return;
    for (ir::Expr operand : {product->contraction.a, product->contraction.b}) {
      const auto id = static_cast<ir::ValueId>(operand->integer);
      const ir::Value& value = graph_.values[static_cast<size_t>(id)];
      const bool matrix = value.is_constant() && value.shape.size() == 2;
      if (!matrix || operand->args[0] != product->contraction.axis || replaced_.count(id)) continue;
      transpose(id, node);
    }
  }

  void transpose(ir::ValueId id, ir::NodeId reader) {
    const Tensor matrix = graph_.values[static_cast<size_t>(id)].constant;
    const std::string name = graph_.values[static_cast<size_t>(id)].name;
    const Dims dims = matrix.dims();
    const ir::ValueId turned = ops::add_constant(graph_, fmt::format("{}/by_columns", name),
                                                 column_concat(dims[1], {{matrix, true, dims[0]}}));
    ir::Node node = ops::new_node("Transpose", {turned});
    node.name = name;
    node.source = graph_.nodes[static_cast<size_t>(reader)].source;
    replaced_[id] = editor_.add(0, std::move(node), fmt::format("{}/rows", name));
  }

  ir::Graph& graph_;
  ops::GraphEditor editor_;
  std::map<ir::ValueId, ir::ValueId> replaced_;
};

}  // namespace

bool align_codes(ir::Graph& graph) { return CodeAligner(graph).run(); }

}  // namespace redfuser::passes
