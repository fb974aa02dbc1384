#include "reference/execute/evaluation.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <unordered_map>

#include "base/error.h"
#include "base/memory_budget.h"
#include "ops/op_def.h"
#include "reference/execute/node.h"
#include "reference/expressions/lanes.h"

namespace redfuser::reference {
namespace {

size_t index(int32_t id) { return static_cast<size_t>(id); }

// The relative distance by which arguments of jumps are moved. fp32 values carry the errors of
// several fp32 operations; 16-bit values were rounded to 16 bits at most twice.
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

// The same for sums that cancel, which carry the errors of their terms: relative to the largest
// element of the tensor.
double nudge_of_terms(DType dtype) { return dtype == DType::Float64 ? 0x1p-52 : 0x1p-22; }

Tensor nudged(const Tensor& tensor, DType original, int side) {
  Tensor result(DType::Float64, tensor.dims());
  const auto* from = tensor.as<double>();
  double largest = 0;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (std::isfinite(from[i])) largest = std::max(largest, std::abs(from[i]));
  }
  const double step = nudge_of(original), least = nudge_of_terms(original) * largest;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const bool up = std::popcount(static_cast<uint64_t>(i) * 0x9e3779b97f4a7c15u) % 2 != 0;
    const double distance = side * (step * std::abs(from[i]) + least);
    result.as<double>()[i] = from[i] + (up ? distance : -distance);
  }
  return result;
}

// The nodes that the wanted values need, in the graph's order.
std::set<ir::NodeId> needed_nodes(const ir::Graph& graph, const std::vector<ir::ValueId>& wanted,
                                  const Evaluation::Given& given) {
  std::set<ir::NodeId> needed;
  std::vector<ir::ValueId> open = wanted;
  while (!open.empty()) {
    const ir::ValueId id = open.back();
    open.pop_back();
    const ir::Value& value = graph.values[index(id)];
    const bool known = value.is_constant() || given(id) != nullptr;
    if (known || value.producer < 0 || !needed.insert(value.producer).second) continue;
    for (const ir::ValueId input : graph.nodes[index(value.producer)].inputs) {
      if (input != ir::kAbsent) open.push_back(input);
    }
  }
  return needed;
}

// The number of uses of each value, by these nodes and as a wanted value.
std::map<ir::ValueId, int> uses_of(const ir::Graph& graph, const std::set<ir::NodeId>& nodes,
                                   const std::vector<ir::ValueId>& wanted) {
  std::map<ir::ValueId, int> uses;
  for (const ir::ValueId id : wanted) ++uses[id];
  for (const ir::NodeId node : nodes) {
    for (const ir::ValueId input : graph.nodes[index(node)].inputs) {
      if (input != ir::kAbsent) ++uses[input];
    }
  }
  return uses;
}

// Computes nodes in order; a tensor lives until its last use.
class Run {
 public:
  Run(const ir::Graph& graph, const Evaluation::Given& given, std::map<ir::ValueId, int> uses,
      int side, Rounding rounding)
      : graph_(graph), given_(given), uses_(std::move(uses)), side_(side), rounding_(rounding) {}

  void compute(ir::NodeId id) {
    const ir::Node& node = graph_.nodes[index(id)];
    std::vector<Tensor> inputs;
    for (const ir::ValueId input : node.inputs) {
      inputs.push_back(input == ir::kAbsent ? Tensor() : take(input));
    }
    std::vector<Tensor> outputs = evaluate_node(graph_, id, std::move(inputs), side_);
    for (size_t k = 0; k < outputs.size(); ++k) {
      const ir::ValueId output = node.outputs[k];
      if (output == ir::kAbsent || given_(output) != nullptr || uses_.count(output) == 0) continue;
      tensors_[output] = rounding_ == Rounding::Never
                             ? std::move(outputs[k])
                             : widened(rounded(outputs[k], graph_.values[index(output)].dtype));
    }
  }

  Tensor take(ir::ValueId id) {
    auto found = tensors_.find(id);
    if (found == tensors_.end()) {
      const ir::Value& value = graph_.values[index(id)];
      const Tensor* given = given_(id);
      RF_CHECK(given != nullptr || value.is_constant(), "\"{}\" is not computed", value.name);
      found = tensors_.emplace(id, widened(given != nullptr ? *given : value.constant)).first;
    }
    Tensor tensor = found->second;
    if (--uses_.at(id) == 0) tensors_.erase(found);
    return tensor;
  }

 private:
  const ir::Graph& graph_;
  const Evaluation::Given& given_;
  std::map<ir::ValueId, int> uses_;
  int side_;
  Rounding rounding_;
  std::unordered_map<ir::ValueId, Tensor> tensors_;
};

}  // namespace

std::vector<Tensor> evaluate_node(const ir::Graph& graph, ir::NodeId id, std::vector<Tensor> inputs,
                                  int side) {
  const ir::Node& node = graph.nodes[index(id)];
  RF_CHECK(node.def != nullptr, "[{}] node \"{}\" has no definition", node.op, node.name);
  if (node.def->random) {
    user_error("[{}] node \"{}\": the reference executor does not cover random operators", node.op,
               node.name);
  }
  if (side != 0 && NodeOnTensors(node, inputs).has_jumps()) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].defined() || inputs[i].dtype() != DType::Float64) continue;
      inputs[i] = nudged(inputs[i], graph.values[index(node.inputs[i])].dtype, side);
    }
  }
  try {
    return NodeOnTensors(node, std::move(inputs)).outputs();
  } catch (const MemoryLimitError& error) {
    user_error("[{}] node \"{}\": {}", node.op, node.name, error.what());
  }
}

std::vector<Tensor> Evaluation::evaluate(const std::vector<ir::ValueId>& wanted, const Given& given,
                                         int side) const {
  const std::set<ir::ValueId> computed(wanted.begin(), wanted.end());
  const Given inputs = [&](ir::ValueId id) { return computed.count(id) > 0 ? nullptr : given(id); };
  // A wanted value without a producer is an input.
  const Given known = [&](ir::ValueId id) {
    return graph_.values[index(id)].producer < 0 ? given(id) : inputs(id);
  };
  const std::set<ir::NodeId> nodes = needed_nodes(graph_, wanted, known);
  Run run(graph_, known, uses_of(graph_, nodes, wanted), side, rounding_);
  for (const ir::NodeId node : nodes) run.compute(node);
  std::vector<Tensor> results;
  for (const ir::ValueId id : wanted) results.push_back(run.take(id));
  return results;
}

Tensor Evaluation::evaluate(ir::ValueId wanted, const Given& given, int side) const {
  return evaluate(std::vector<ir::ValueId>{wanted}, given, side)[0];
}

}  // namespace redfuser::reference
