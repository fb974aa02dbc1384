#include "passes/precision/precision_class.h"

#include "ir/scalars/operations.h"
#include "ops/lowering.h"

namespace redfuser::passes {
namespace {

class Classifier {
 public:
  explicit Classifier(const ir::Graph& graph) : graph_(graph) {}

  void add(ir::Expr body) {
    visit(body, [&](ir::Expr expr) { add_operation(expr); });
  }

  NodePrecision result() const {
    NodePrecision sensitivity;
    sensitivity.multiplies = multiplies_;
    sensitivity.sums = sums_;
    sensitivity.kind = single_     ? ops::PrecisionClass::Single
                       : products_ ? ops::PrecisionClass::Product
                       : computes_ ? ops::PrecisionClass::Follows
                                   : ops::PrecisionClass::Moves;
    return sensitivity;
  }

 private:
  bool reads_data(ir::Expr expr) const {
    bool found = false;
    visit(expr, [&](ir::Expr part) {
      found |= part->op == ir::ExprOp::Read && is_float(part->dtype) &&
               !graph_.values[static_cast<size_t>(part->integer)].is_constant();
    });
    return found;
  }

  // Σ a·b over two different operands.
  bool is_contraction(ir::Expr reduce) const {
    if (reduce->reduction != ir::Reduction::Sum) return false;
    ir::Expr body = reduce->body();
    while (body->op == ir::ExprOp::Cast || body->op == ir::ExprOp::Reduce) {
      body = body->op == ir::ExprOp::Cast ? body->args[0] : body->body();
    }
    return body->op == ir::ExprOp::Mul && body->args[0] != body->args[1] &&
           body->args[0]->has_read && body->args[1]->has_read;
  }

  void add_reduction(ir::Expr reduce) {
    if (is_contraction(reduce)) {
      products_ = true;
      return;
    }
    single_ = true;
    sums_ |= reduce->reduction == ir::Reduction::Sum || reduce->reduction == ir::Reduction::Prod;
  }

  void add_operation(ir::Expr expr) {
    const bool real = is_float(expr->dtype);
    switch (expr->op) {
      case ir::ExprOp::Reduce:
        if (real) add_reduction(expr);
        return;
      case ir::ExprOp::Mul:
        if (real) multiplies_ |= reads_data(expr->args[0]) && reads_data(expr->args[1]);
        computes_ |= real;
        return;
      case ir::ExprOp::Div:
        single_ |= real && reads_data(expr->args[1]);
        computes_ |= real;
        return;
      case ir::ExprOp::Cast:
        single_ |= real != is_float(expr->args[0]->dtype) && expr->args[0]->has_read;
        return;
      case ir::ExprOp::Constant:
      case ir::ExprOp::Symbol:
      case ir::ExprOp::Axis:
      case ir::ExprOp::Leaf:
      case ir::ExprOp::Read:
      case ir::ExprOp::Select:
        return;
      default:
        break;
    }
    const ir::ErrorGrowth error = ir::scalar_op(expr->op).error;
    single_ |= real && error == ir::ErrorGrowth::Unbounded;
    computes_ |= real && error == ir::ErrorGrowth::Bounded;
  }

  const ir::Graph& graph_;
  bool single_ = false, products_ = false, computes_ = false;
  bool multiplies_ = false, sums_ = false;
};

}  // namespace

NodePrecision precision_class_of(const ir::Graph& graph, const ir::Node& node) {
  if (node.attributes.count("to") || node.attributes.count("dtype")) return {};
  if (node.def == nullptr || node.def->random) return {};
  if (node.def->lower == nullptr) {
    return {node.def->sensitivity(ops::NodeView(graph, node)), false, false};
  }
  Classifier classifier(graph);
  for (const ir::ValueId output : node.outputs) {
    if (output == ir::kAbsent) continue;
    const ir::Value& value = graph.values[static_cast<size_t>(output)];
    if (value.indexed || value.has_elements) return {};
    ops::Lowering lowering(graph, [output](ir::ValueId id) { return id == output; });
    classifier.add(lowering.element(output, ops::output_axes(graph, output)));
  }
  return classifier.result();
}

}  // namespace redfuser::passes
