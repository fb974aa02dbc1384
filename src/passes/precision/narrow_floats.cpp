#include "passes/precision/narrow_floats.h"

#include <algorithm>

#include "passes/precision/narrow_constant.h"

namespace redfuser::passes {
namespace {

size_t index(ir::ValueId id) { return static_cast<size_t>(id); }

bool moves_or_follows(ops::PrecisionClass kind) {
  return kind == ops::PrecisionClass::Moves || kind == ops::PrecisionClass::Follows;
}

}  // namespace

NarrowFloats::NarrowFloats(const ir::Graph& graph, const FloatConversion& conversion)
    : graph_(graph), conversion_(conversion) {
  const size_t values = graph.values.size();
  for (auto* flags : {&narrow_, &available_, &fits_, &whole_, &wanted_, &summed_}) {
    flags->assign(values, 0);
  }
  narrow_node_.assign(graph.nodes.size(), 0);
  classify();
  find_whole_numbers();
  find_wanted();
  find_summed();
  decide();
}

bool NarrowFloats::is_float(ir::ValueId id) const {
  return id != ir::kAbsent && graph_.values[index(id)].dtype == DType::Float32;
}

void NarrowFloats::classify() {
  for (const ir::Node& node : graph_.nodes) {
    sensitivities_.push_back(precision_class_of(graph_, node));
    if (conversion_.allowed && !conversion_.allowed(node)) {
      sensitivities_.back().kind = ops::PrecisionClass::Single;
    }
  }
  for (size_t i = 0; i < fits_.size(); ++i) {
    const ir::Value& value = graph_.values[i];
    fits_[i] = value.is_constant() && value.dtype == DType::Float32 &&
               narrow_fit(value.constant, conversion_.to) == NarrowFit::Fits;
  }
}

// Positions and masks: results of casts from integers and of index expressions, and functions of
// these and of constants alone.
void NarrowFloats::find_whole_numbers() {
  for (size_t n = 0; n < graph_.nodes.size(); ++n) {
    const ir::Node& node = graph_.nodes[n];
    bool floats = false, all = true;
    for (const ir::ValueId input : node.inputs) {
      if (!is_float(input)) continue;
      floats = floats || !graph_.values[index(input)].is_constant();
      all = all && (whole_[index(input)] || graph_.values[index(input)].is_constant());
    }
    const bool generated = !floats && node.attributes.count("to") > 0 && !node.inputs.empty() &&
                           !redfuser::is_float(graph_.values[index(node.inputs[0])].dtype);
    for (const ir::ValueId output : node.outputs) {
      if (!is_float(output)) continue;
      const ir::Value& value = graph_.values[index(output)];
      whole_[index(output)] = value.indexed || value.has_elements || generated ||
                              (floats && all && moves_or_follows(sensitivities_[n].kind));
    }
  }
}

bool NarrowFloats::is_narrow_product(size_t n) const {
  if (sensitivities_[n].kind != ops::PrecisionClass::Product) return false;
  const std::vector<ir::ValueId>& inputs = graph_.nodes[n].inputs;
  return std::all_of(inputs.begin(), inputs.end(), [&](ir::ValueId input) {
    if (!is_float(input)) return true;
    return graph_.values[index(input)].is_constant() ? fits_[index(input)] != 0
                                                     : whole_[index(input)] == 0;
  });
}

// True for one computed operand, with constants of one element.
bool NarrowFloats::scales(size_t n) const {
  if (sensitivities_[n].kind != ops::PrecisionClass::Follows) return false;
  int computed = 0;
  for (const ir::ValueId input : graph_.nodes[n].inputs) {
    if (!is_float(input)) continue;
    const ir::Value& value = graph_.values[index(input)];
    if (!value.is_constant()) ++computed;
    if (value.is_constant() && (value.constant.size() != 1 || !fits_[index(input)])) return false;
  }
  return computed == 1;
}

void NarrowFloats::find_wanted() {
  for (size_t n = graph_.nodes.size(); n-- > 0;) {
    const ir::Node& node = graph_.nodes[n];
    bool wanted = is_narrow_product(n);
    if (sensitivities_[n].kind == ops::PrecisionClass::Moves || scales(n)) {
      for (const ir::ValueId output : node.outputs)
        wanted |= is_float(output) && wanted_[index(output)];
    }
    if (!wanted) continue;
    for (const ir::ValueId input : node.inputs) {
      if (is_float(input) && !whole_[index(input)]) wanted_[index(input)] = 1;
    }
  }
}

void NarrowFloats::find_summed() {
  std::vector<int> readers(graph_.values.size());
  for (const ir::Node& node : graph_.nodes) {
    for (const ir::ValueId input : node.inputs) {
      if (input != ir::kAbsent) ++readers[index(input)];
    }
  }
  for (const ir::ValueId output : graph_.outputs) ++readers[index(output)];
  for (size_t n = graph_.nodes.size(); n-- > 0;) {
    const ir::Node& node = graph_.nodes[n];
    bool summed = sensitivities_[n].sums;
    if (moves_or_follows(sensitivities_[n].kind)) {
      for (const ir::ValueId output : node.outputs) {
        summed |= is_float(output) && summed_[index(output)] && readers[index(output)] == 1;
      }
    }
    if (!summed) continue;
    for (const ir::ValueId input : node.inputs) {
      if (is_float(input)) summed_[index(input)] = 1;
    }
  }
}

bool NarrowFloats::decide_node(const ir::Node& node, const NodePrecision& sensitivity) const {
  if (!moves_or_follows(sensitivity.kind)) return false;
  bool computed = false;
  for (const ir::ValueId input : node.inputs) {
    if (!is_float(input)) continue;
    if (!available_[index(input)]) return false;
    computed = computed || !graph_.values[index(input)].is_constant();
  }
  for (const ir::ValueId output : node.outputs) {
    if (is_float(output) && sensitivity.multiplies && summed_[index(output)]) return false;
  }
  return computed || sensitivity.kind == ops::PrecisionClass::Moves;
}

void NarrowFloats::decide() {
  for (size_t i = 0; i < available_.size(); ++i) available_[i] = fits_[i];
  for (const ir::ValueId input : graph_.inputs) {
    if (!is_float(input)) continue;
    narrow_[index(input)] = !conversion_.keep_io;
    available_[index(input)] = 1;
  }
  for (size_t n = 0; n < graph_.nodes.size(); ++n) {
    const ir::Node& node = graph_.nodes[n];
    const bool reads_floats = std::any_of(node.inputs.begin(), node.inputs.end(),
                                          [&](ir::ValueId input) { return is_float(input); });
    const bool narrow =
        reads_floats && (is_narrow_product(n) || decide_node(node, sensitivities_[n]));
    narrow_node_[n] = narrow;
    for (const ir::ValueId output : node.outputs) {
      if (!is_float(output) || graph_.values[index(output)].is_constant()) continue;
      narrow_[index(output)] = narrow;
      available_[index(output)] = narrow || wanted_[index(output)];
    }
  }
}

}  // namespace redfuser::passes
