#include "passes/precision/precision_class.h"

namespace redfuser {
namespace {

class Classifier {
 public:
  explicit Classifier(const Graph& graph) : graph_(graph) {}

  void add(Expr body) {
    visit(body, [&](Expr expr) { add_operation(expr); });
  }

  NodeSensitivity result() const {
    NodeSensitivity sensitivity;
    sensitivity.multiplies = multiplies_;
    sensitivity.sums = sums_;
    sensitivity.kind = single_     ? Sensitivity::Single
                       : products_ ? Sensitivity::Product
                       : computes_ ? Sensitivity::Follows
                                   : Sensitivity::Moves;
    return sensitivity;
  }

 private:
  bool reads_data(Expr expr) const {
    bool found = false;
    visit(expr, [&](Expr part) {
      found |= part->op == ExprOp::Read && is_float(part->dtype) &&
               !graph_.values[static_cast<size_t>(part->integer)].is_constant();
    });
    return found;
  }

  // Σ a·b over two different operands.
  bool is_contraction(Expr reduce) const {
    if (reduce->reduction != Reduction::Sum) return false;
    Expr body = reduce->body();
    while (body->op == ExprOp::Cast || body->op == ExprOp::Reduce) {
      body = body->op == ExprOp::Cast ? body->args[0] : body->body();
    }
    return body->op == ExprOp::Mul && body->args[0] != body->args[1] && body->args[0]->has_read &&
           body->args[1]->has_read;
  }

  void add_reduction(Expr reduce) {
    if (is_contraction(reduce)) {
      products_ = true;
      return;
    }
    single_ = true;
    sums_ |= reduce->reduction == Reduction::Sum || reduce->reduction == Reduction::Prod;
  }

  void add_operation(Expr expr) {
    const bool real = is_float(expr->dtype);
    switch (expr->op) {
      case ExprOp::Reduce:
        if (real) add_reduction(expr);
        return;
      case ExprOp::Mul:
        if (real) multiplies_ |= reads_data(expr->args[0]) && reads_data(expr->args[1]);
        computes_ |= real;
        return;
      case ExprOp::Div:
        single_ |= real && reads_data(expr->args[1]);
        computes_ |= real;
        return;
      case ExprOp::Cast:
        single_ |= real != is_float(expr->args[0]->dtype) && expr->args[0]->has_read;
        return;
      case ExprOp::Add:
      case ExprOp::Sub:
      case ExprOp::Neg:
      case ExprOp::Abs:
      case ExprOp::Sign:
      case ExprOp::Tanh:
      case ExprOp::Erf:
      case ExprOp::Min:
      case ExprOp::Max:
        computes_ |= real;
        return;
      case ExprOp::Constant:
      case ExprOp::Symbol:
      case ExprOp::Axis:
      case ExprOp::Leaf:
      case ExprOp::Read:
      case ExprOp::Select:
      case ExprOp::Less:
      case ExprOp::LessEqual:
      case ExprOp::Equal:
      case ExprOp::IsNaN:
      case ExprOp::IsPosInf:
      case ExprOp::IsNegInf:
        return;
      default:
        single_ |= real;
    }
  }

  const Graph& graph_;
  bool single_ = false, products_ = false, computes_ = false;
  bool multiplies_ = false, sums_ = false;
};

}  // namespace

NodeSensitivity sensitivity_of(const Graph& graph, const Node& node) {
  if (node.attributes.count("to") || node.attributes.count("dtype")) return {};
  if (node.def == nullptr || node.def->random) return {};
  if (node.def->lower == nullptr) {
    return {node.def->sensitivity(NodeView(graph, node)), false, false};
  }
  Classifier classifier(graph);
  for (const ValueId output : node.outputs) {
    if (output == kAbsent) continue;
    const Value& value = graph.values[static_cast<size_t>(output)];
    if (value.indexed || value.has_elements) return {};
    Lowering lowering(graph, [output](ValueId id) { return id == output; });
    classifier.add(lowering.element(output, output_axes(graph, output)));
  }
  return classifier.result();
}

}  // namespace redfuser
