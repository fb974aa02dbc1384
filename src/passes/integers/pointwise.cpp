#include "passes/integers/pointwise.h"

#include <algorithm>

namespace redfuser::passes {

bool is_byte(DType dtype) { return dtype == DType::Int8 || dtype == DType::UInt8; }

ir::ValueId read_value(ir::Expr e, const std::vector<ir::Expr>& axes) {
  ir::ValueId value = ir::kAbsent;
  bool pointwise = true;
  visit(e, [&](ir::Expr part) {
    switch (part->op) {
      case ir::ExprOp::Read: {
        const auto id = static_cast<ir::ValueId>(part->integer);
        pointwise &= part->args == axes && (value == ir::kAbsent || value == id);
        value = id;
        break;
      }
      case ir::ExprOp::Symbol:
      case ir::ExprOp::Leaf:
      case ir::ExprOp::Reduce:
        pointwise = false;
        break;
      default:
        break;
    }
  });
  return pointwise ? value : ir::kAbsent;
}

bool is_function_of(const ir::Graph& graph, const ir::Node& node, ir::ValueId value) {
  if (node.outputs.size() != 1) return false;
  return std::all_of(node.inputs.begin(), node.inputs.end(), [&](ir::ValueId id) {
    if (id == value || id == ir::kAbsent) return true;
    const ir::Value& other = graph.values[static_cast<size_t>(id)];
    return other.is_constant() && other.constant.size() == 1;
  });
}

}  // namespace redfuser::passes
