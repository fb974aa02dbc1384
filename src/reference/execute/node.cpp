#include "reference/execute/node.h"

#include "base/error.h"
#include "ir/evaluate.h"
#include "ir/scalars/operations.h"
#include "ops/infer.h"
#include "ops/lowering.h"
#include "ops/registry.h"
#include "ops/sizes.h"
#include "reference/expressions/elements.h"
#include "reference/operators/opaque.h"

namespace redfuser::reference {
namespace {

[[noreturn]] void refuse(const ir::Node& node) {
  user_error("[{}] node \"{}\": the reference executor does not cover the operator", node.op,
             node.name);
}

bool is_narrow(int64_t dtype) {
  return is_float(static_cast<DType>(dtype)) && static_cast<DType>(dtype) != DType::Float64;
}

// Attributes that name a type or hold a tensor.
void widen_attributes(ir::Node& node) {
  for (auto& [name, attribute] : node.attributes) {
    if (auto* tensor = std::get_if<Tensor>(&attribute)) *tensor = widened(*tensor);
    const bool names_type = name == "to" || name == "dtype" || name == "output_dtype";
    auto* type = std::get_if<int64_t>(&attribute);
    if (names_type && type != nullptr && is_narrow(*type)) {
      *type = static_cast<int64_t>(DType::Float64);
    }
  }
}

// With known inputs a node may have an expression that it does not have in its graph.
const ops::OpDef* definition_of(const ir::Node& node) {
  const ops::OpDef* def = ops::find_op(node.domain, node.op, node.opset);
  return def != nullptr && def->opaque == node.def ? def : node.def;
}

ir::Expr read(ir::ExprPool& pool, const ir::Graph& graph, ir::ValueId id,
              std::vector<ir::Expr> index) {
  return pool.read(id, graph.values[static_cast<size_t>(id)].dtype, std::move(index));
}

}  // namespace

NodeOnTensors::NodeOnTensors(const ir::Node& node, std::vector<Tensor> inputs) {
  graph_.pool = std::make_shared<ir::ExprPool>();
  ir::Node own = node;
  own.def = definition_of(node);
  if (!is_covered(own)) refuse(node);
  widen_attributes(own);
  for (size_t i = 0; i < own.inputs.size(); ++i) {
    if (own.inputs[i] == ir::kAbsent) continue;
    own.inputs[i] = graph_.add_value(fmt::format("input{}", i));
    ops::set_constant(graph_, own.inputs[i], inputs[i]);
    tensors_.push_back(std::move(inputs[i]));
  }
  for (size_t k = 0; k < own.outputs.size(); ++k) {
    if (own.outputs[k] == ir::kAbsent) continue;
    own.outputs[k] = graph_.add_value(fmt::format("output{}", k));
    graph_.values.back().producer = 0;
    graph_.values.back().output_index = static_cast<int>(k);
  }
  meanings_.resize(own.outputs.size());
  graph_.nodes.push_back(std::move(own));
  ops::InferContext context(graph_, graph_.nodes[0]);
  graph_.nodes[0].def->infer(context);
}

const NodeOnTensors::Meaning& NodeOnTensors::meaning(int output) {
  Meaning& meaning = meanings_[static_cast<size_t>(output)];
  if (meaning.element != nullptr) return meaning;
  const auto lower = node().def->lower != nullptr ? node().def->lower : expression_of(node());
  if (lower == nullptr) return meaning;
  ir::ExprPool& pool = *graph_.pool;
  const ir::Value& value =
      graph_.values[static_cast<size_t>(node().outputs[static_cast<size_t>(output)])];
  if (!ops::constant_count(value.shape)) refuse(node());
  meaning.axes = ops::output_axes(graph_, node().outputs[static_cast<size_t>(output)]);
  const ops::LowerContext::Reader reader = [&](ir::ValueId id, std::vector<ir::Expr> index) {
    return read(pool, graph_, id, std::move(index));
  };
  ops::LowerContext context(graph_, node(), output, meaning.axes, reader);
  meaning.element = lower(context);
  return meaning;
}

bool NodeOnTensors::has_jumps() {
  for (size_t k = 0; k < node().outputs.size(); ++k) {
    const ir::ValueId output = node().outputs[k];
    if (output == ir::kAbsent) continue;
    if (!is_float(graph_.values[static_cast<size_t>(output)].dtype)) return true;
    ir::Expr element = meaning(static_cast<int>(k)).element;
    bool found = false;
    if (element != nullptr) visit(element, [&](ir::Expr expr) { found |= ir::jumps(expr); });
    if (found) return true;
  }
  return false;
}

void NodeOnTensors::check_positions() const {
  if (node().def->positions == nullptr) return;
  ir::ExprPool& pool = *graph_.pool;
  const ops::LowerContext::Reader reader = [&](ir::ValueId id, std::vector<ir::Expr> index) {
    return read(pool, graph_, id, std::move(index));
  };
  const ops::LowerContext context(graph_, node(), 0, {}, reader);
  Elements elements(pool, tensors_);
  for (const ops::Positions& positions : node().def->positions(context)) {
    const Tensor found =
        elements.values(pool.cast(DType::Int64, positions.position), positions.axes);
    const int64_t low = evaluate_size(positions.low, {}), high = evaluate_size(positions.high, {});
    for (int64_t i = 0; i < found.size(); ++i) {
      const int64_t at = found.as<int64_t>()[i];
      if (at >= low && at <= high) continue;
      user_error("[{}] node \"{}\": {} {} is out of range for size {}", node().op, node().name,
                 positions.what, at, evaluate_size(positions.size, {}));
    }
  }
}

std::vector<Tensor> NodeOnTensors::outputs() {
  check_positions();
  if (const Direct function = function_of(node())) return function(ops::NodeView(graph_, node()));
  std::vector<Tensor> results(node().outputs.size());
  Elements elements(*graph_.pool, tensors_);
  for (size_t k = 0; k < results.size(); ++k) {
    const ir::ValueId id = node().outputs[k];
    if (id == ir::kAbsent) continue;
    const ir::Value& value = graph_.values[static_cast<size_t>(id)];
    const Meaning& meaning = this->meaning(static_cast<int>(k));
    if (meaning.element != nullptr) {
      results[k] = elements.values(meaning.element, meaning.axes);
    } else if (value.is_constant()) {
      results[k] = value.constant;
    } else {
      refuse(node());
    }
  }
  return results;
}

}  // namespace redfuser::reference
