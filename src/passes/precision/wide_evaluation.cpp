#include "passes/precision/wide_evaluation.h"

#include <bit>
#include <set>
#include <unordered_map>

#include "base/error.h"
#include "ops/op_def.h"
#include "redfuser/convert.h"

namespace redfuser::passes {
namespace {

size_t index(int32_t id) { return static_cast<size_t>(id); }

Tensor widened(const Tensor& tensor) {
  return is_float(tensor.dtype()) ? cast_floats(tensor, DType::Float64) : tensor;
}

// Relative: the units by which arguments of jumps are moved. Values in fp32 have come through some
// operations in fp32; those in 16 bits were rounded to them at most twice.
double nudge_of(DType dtype) {
  switch (dtype) {
    case DType::Float16:
      return 0x1p-9;
    case DType::BFloat16:
      return 0x1p-6;
    case DType::Float32:
      return 0x1p-18;
    default:
      return 0x1p-48;
  }
}

Tensor nudged(const Tensor& tensor, DType original, int side) {
  Tensor result(DType::Float64, tensor.dims());
  const double step = nudge_of(original) * side;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const bool up = std::popcount(static_cast<uint64_t>(i) * 0x9e3779b97f4a7c15u) % 2 != 0;
    result.as<double>()[i] = tensor.as<double>()[i] * (1 + (up ? step : -step));
  }
  return result;
}

bool jumps(ir::Expr expr) {
  const bool takes_floats = !expr->args.empty() && is_float(expr->args[0]->dtype);
  switch (expr->op) {
    case ir::ExprOp::Floor:
    case ir::ExprOp::Ceil:
    case ir::ExprOp::Round:
    case ir::ExprOp::Sign:
    case ir::ExprOp::FloorDiv:
    case ir::ExprOp::FloorMod:
    case ir::ExprOp::TruncMod:
    case ir::ExprOp::Less:
    case ir::ExprOp::LessEqual:
    case ir::ExprOp::Equal:
      return takes_floats;
    case ir::ExprOp::Cast:
      return takes_floats && !is_float(expr->dtype);
    default:
      return false;
  }
}

bool has_jumps(const ir::Graph& graph, const ir::Node& node) {
  for (const ir::ValueId output : node.outputs) {
    if (output == ir::kAbsent) continue;
    if (!is_float(graph.values[index(output)].dtype)) return true;
    if (node.def->lower == nullptr) continue;
    ops::Lowering lowering(graph, [output](ir::ValueId id) { return id == output; });
    bool found = false;
    ir::visit(lowering.element(output, ops::output_axes(graph, output)),
              [&](ir::Expr expr) { found |= jumps(expr); });
    if (found) return true;
  }
  return false;
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

// Builds the wide graph node by node: its values are constants as soon as they are there.
class WideGraph {
 public:
  WideGraph(const ir::Graph& source, const WideEvaluation::Given& given, int side)
      : source_(source), given_(given), side_(side) {
    graph_.pool = std::make_shared<ir::ExprPool>();
  }

  void compute(ir::NodeId id, NodeEvaluator& evaluator) {
    ir::Node node = source_.nodes[index(id)];
    const bool lowered = node.def->lower != nullptr;
    const bool nudges = side_ != 0 && has_jumps(source_, node);
    for (ir::ValueId& input : node.inputs) {
      if (input != ir::kAbsent) input = argument(input, lowered, nudges);
    }
    if (lowered) widen_attributes(node);
    const std::vector<ir::ValueId> outputs = node.outputs;
    const auto mine = static_cast<ir::NodeId>(graph_.nodes.size());
    for (size_t k = 0; k < outputs.size(); ++k) {
      if (outputs[k] == ir::kAbsent) continue;
      node.outputs[k] = graph_.add_value(source_.values[index(outputs[k])].name);
      graph_.values.back().producer = mine;
      graph_.values.back().output_index = static_cast<int>(k);
    }
    graph_.nodes.push_back(std::move(node));
    ops::infer_node(graph_, mine);
    evaluator.evaluate(graph_, mine);
    for (size_t k = 0; k < outputs.size(); ++k) {
      if (outputs[k] == ir::kAbsent || given_(outputs[k]) != nullptr) continue;
      const ir::ValueId output = graph_.nodes[index(mine)].outputs[k];
      tensors_[outputs[k]] = widened(graph_.values[index(output)].constant);
    }
  }

  const Tensor& tensor(ir::ValueId id) {
    const auto [found, added] = tensors_.try_emplace(id);
    if (added) {
      const ir::Value& value = source_.values[index(id)];
      const Tensor* given = given_(id);
      RF_CHECK(given != nullptr || value.is_constant(), "\"{}\" is not computed", value.name);
      found->second = widened(given != nullptr ? *given : value.constant);
    }
    return found->second;
  }

 private:
  ir::ValueId argument(ir::ValueId id, bool lowered, bool nudges) {
    const DType original = source_.values[index(id)].dtype;
    Tensor argument = tensor(id);
    if (is_float(original)) {
      if (nudges) argument = nudged(argument, original, side_);
      if (!lowered && original != DType::Float64) argument = cast_floats(argument, DType::Float32);
    }
    const ir::ValueId result = graph_.add_value(fmt::format("argument{}", graph_.values.size()));
    ops::set_constant(graph_, result, std::move(argument));
    return result;
  }

  const ir::Graph& source_;
  const WideEvaluation::Given& given_;
  int side_;
  ir::Graph graph_;
  std::unordered_map<ir::ValueId, Tensor> tensors_;  // by the source's values
};

}  // namespace

std::vector<ir::NodeId> WideEvaluation::needed_nodes(ir::ValueId wanted, const Given& given) const {
  std::set<ir::NodeId> needed;
  std::vector<ir::ValueId> open = {wanted};
  while (!open.empty()) {
    const ir::ValueId id = open.back();
    open.pop_back();
    const ir::NodeId producer = graph_.values[index(id)].producer;
    const bool known = id != wanted && (graph_.values[index(id)].is_constant() || given(id));
    if (known || producer < 0 || !needed.insert(producer).second) continue;
    for (const ir::ValueId input : graph_.nodes[index(producer)].inputs) {
      if (input != ir::kAbsent) open.push_back(input);
    }
  }
  return {needed.begin(), needed.end()};
}

Tensor WideEvaluation::evaluate(ir::ValueId wanted, const Given& given, int side) {
  const Given inputs = [&](ir::ValueId id) { return id == wanted ? nullptr : given(id); };
  evaluator_.forget_sizes();
  WideGraph wide(graph_, inputs, side);
  for (const ir::NodeId node : needed_nodes(wanted, inputs)) wide.compute(node, evaluator_);
  return wide.tensor(wanted);
}

}  // namespace redfuser::passes
