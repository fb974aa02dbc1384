#include "passes/precision/convert_floats.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "ops/graph_editor.h"
#include "passes/passes.h"
#include "passes/precision/narrow_constant.h"
#include "passes/precision/narrow_floats.h"

namespace redfuser::passes {
namespace {

constexpr int kBFloat16Opset = 13;

// Rewrites the graph by the decisions of NarrowFloats.
class Converter {
 public:
  Converter(ir::Graph& graph, const FloatConversion& conversion)
      : graph_(graph), conversion_(conversion), decided_(graph, conversion) {
    for (const ir::Value& value : graph.values) names_.insert(value.name);
    for (const ir::Node& node : graph.nodes) {
      if (node.domain.empty()) opset_ = std::max(opset_, node.opset);
    }
  }

  void run() {
    was_float_.resize(graph_.values.size());
    for (size_t i = 0; i < was_float_.size(); ++i) {
      const auto id = static_cast<ir::ValueId>(i);
      was_float_[i] = graph_.values[i].dtype == DType::Float32;
      if (decided_.narrow(id)) graph_.values[i].dtype = conversion_.to;
    }
    std::vector<ir::Node> nodes = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (size_t n = 0; n < nodes.size(); ++n) {
      convert_inputs(nodes[n], decided_.narrow_node(static_cast<ir::NodeId>(n)));
      ops::append_node(graph_, std::move(nodes[n]));
    }
    for (ir::ValueId& output : graph_.outputs) output = converted_output(output);
    eliminate_dead(graph_);
    restore_names();
  }

 private:
  ir::Value& value(ir::ValueId id) { return graph_.values[static_cast<size_t>(id)]; }

  std::string unique(const std::string& wanted) {
    std::string name = wanted;
    for (int copy = 2; !names_.insert(name).second; ++copy) {
      name = fmt::format("{}_{}", wanted, copy);
    }
    return name;
  }

  void convert_inputs(ir::Node& node, bool narrow) {
    for (ir::ValueId& input : node.inputs) {
      if (input == ir::kAbsent || !was_float_[static_cast<size_t>(input)]) continue;
      input = as(input, narrow ? conversion_.to : DType::Float32);
    }
  }

  // The value in the given type.
  ir::ValueId as(ir::ValueId id, DType dtype) {
    if (value(id).dtype == dtype) return id;
    const auto [found, added] = made_.try_emplace({id, dtype}, ir::kAbsent);
    if (added) found->second = value(id).is_constant() ? add_constant(id) : add_cast(id, dtype);
    return found->second;
  }

  ir::ValueId add_constant(ir::ValueId id) {
    const std::string name = value(id).name;
    const std::string mine = unique(fmt::format("{}/{}", name, name_of(conversion_.to)));
    original_names_[mine] = name;
    return ops::add_constant(graph_, mine, narrowed(value(id).constant, conversion_.to));
  }

  ir::ValueId add_cast(ir::ValueId id, DType dtype) {
    if (conversion_.to == DType::BFloat16 && opset_ < kBFloat16Opset) {
      user_error("bfloat16 needs opset {} or newer; the model has opset {}", kBFloat16Opset,
                 opset_);
    }
    ir::Node node = ops::new_node("Cast", {id}, {{"to", static_cast<int64_t>(dtype)}}, opset_);
    node.name = unique(fmt::format("{}/{}", value(id).name, name_of(dtype)));
    const ir::NodeId producer = value(id).producer;
    if (producer >= 0) node.source = graph_.nodes[static_cast<size_t>(producer)].source;
    const ir::ValueId result = graph_.add_value(node.name, dtype);
    value(result).shape = value(id).shape;
    node.outputs = {result};
    ops::append_node(graph_, std::move(node));
    return result;
  }

  // An output keeps its name.
  ir::ValueId converted_output(ir::ValueId id) {
    if (!was_float_[static_cast<size_t>(id)]) return id;
    const bool unfit = value(id).is_constant() && !decided_.available(id);
    const ir::ValueId result =
        as(id, conversion_.keep_io || unfit ? DType::Float32 : conversion_.to);
    if (result != id) std::swap(value(result).name, value(id).name);
    return result;
  }

  // A constant that is read in one type only keeps its name.
  void restore_names() {
    std::set<std::string> present;
    for (const ir::Value& each : graph_.values) present.insert(each.name);
    for (ir::Value& each : graph_.values) {
      const auto original = original_names_.find(each.name);
      if (original != original_names_.end() && !present.count(original->second)) {
        each.name = original->second;
      }
    }
  }

  ir::Graph& graph_;
  const FloatConversion& conversion_;
  const NarrowFloats decided_;
  std::vector<char> was_float_;  // by value, before the conversion
  std::set<std::string> names_;
  std::map<std::pair<ir::ValueId, DType>, ir::ValueId> made_;
  std::map<std::string, std::string> original_names_;  // of narrowed constants
  int opset_ = 0;
};

std::vector<OverflowingConstant> overflowing(const ir::Graph& graph, DType to) {
  std::vector<OverflowingConstant> result;
  for (const ir::Value& value : graph.values) {
    if (!value.is_constant() || value.dtype != DType::Float32 || value.producer >= 0) continue;
    if (narrow_fit(value.constant, to) != NarrowFit::Overflows) continue;
    result.push_back({value.name, largest_finite(value.constant), value.constant.size()});
  }
  std::sort(result.begin(), result.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return result;
}

}  // namespace

std::vector<OverflowingConstant> convert_floats(ir::Graph& graph,
                                                const FloatConversion& conversion) {
  RF_CHECK(conversion.to == DType::Float16 || conversion.to == DType::BFloat16,
           "no conversion to {}", name_of(conversion.to));
  std::vector<OverflowingConstant> result = overflowing(graph, conversion.to);
  Converter(graph, conversion).run();
  return result;
}

}  // namespace redfuser::passes
