#include "passes/code_products.h"

#include <algorithm>

#include "ops/lowering.h"
#include "ops/op_def.h"

namespace redfuser::passes {
namespace {

bool is_code(DType dtype) { return is_low_bit_float(dtype) && bits_of(dtype) == 8; }

const ir::Value& value_of(const ir::Graph& graph, ir::ValueId id) {
  return graph.values[static_cast<size_t>(id)];
}

// The node's only output, in terms of what it reads; null without a lowering.
ir::Expr body_of(const ir::Graph& graph, const ir::Node& node) {
  if (!node.def || !node.def->lower || node.outputs.size() != 1) return nullptr;
  const ir::ValueId output = node.outputs[0];
  ops::Lowering lowering(graph, [&](ir::ValueId v) { return v == output; });
  return lowering.element(output, ops::shared_index(graph, output));
}

// A view, a cast, or what makes floats of 8-bit ones.
bool passes_codes(const ir::Graph& graph, ir::ValueId id) {
  const ir::Value& value = value_of(graph, id);
  if (value.producer < 0 || value.is_constant()) return false;
  ir::Expr body = body_of(graph, graph.nodes[static_cast<size_t>(value.producer)]);
  if (!body || body->bound_level > 0) return false;
  if (ir::without_float_casts(body)->op == ir::ExprOp::Read) return true;
  bool unpacks = false;
  visit(body, [&](ir::Expr e) {
    unpacks |= e->op == ir::ExprOp::Cast && is_float(e->dtype) && is_code(e->args[0]->dtype);
  });
  return unpacks && is_float(value.dtype);
}

}  // namespace

std::optional<CodeProduct> code_product(const ir::Graph& graph, ir::NodeId id) {
  const ir::Node& node = graph.nodes[static_cast<size_t>(id)];
  ir::Expr body = body_of(graph, node);
  if (!body || body->bound_level == 0) return std::nullopt;
  CodeProduct product;
  const ir::ValueId output = node.outputs[0];
  ops::Lowering lowering(graph, [&](ir::ValueId v) {
    if (v == output) return true;
    // Codes stay as they are.
    if (is_code(value_of(graph, v).dtype) || !passes_codes(graph, v)) return false;
    product.passed.push_back(value_of(graph, v).producer);
    return true;
  });
  body = ir::without_float_casts(lowering.element(output, ops::shared_index(graph, output)));
  const auto contraction = as_contraction(*graph.pool, body, ir::Operands::FloatsAndCodes);
  if (!contraction || !is_code(contraction->a->dtype) || !is_code(contraction->b->dtype)) {
    return std::nullopt;
  }
  product.contraction = *contraction;
  return product;
}

bool has_codes(const ir::Graph& graph) {
  return std::any_of(graph.values.begin(), graph.values.end(),
                     [](const ir::Value& value) { return is_code(value.dtype); });
}

}  // namespace redfuser::passes
