#include "fuse/region_replay.h"

#include "ir/same_attribute.h"

namespace redfuser::fuse {
namespace {

// Maps nodes and values of one part of the graph to another, from the seeds along inputs and
// readers.
class Matcher {
 public:
  Matcher(const NodeFacts& facts, const RegionTrace& growth, const Claimed& taken)
      : facts_(facts), graph_(facts.graph()), growth_(growth), taken_(taken) {}

  bool run(ir::NodeId seed) {
    if (!pair_nodes(growth_.seed, seed)) return false;
    while (!open_.empty()) {
      const auto [from, to] = open_.back();
      open_.pop_back();
      if (!match(from, to)) return false;
    }
    // Nodes are tried in the graph's order.
    ir::NodeId last = -1;
    for (const auto& [node, free] : growth_.consulted) {
      const auto image = nodes_.find(node);
      if (image == nodes_.end() || image->second <= last) return false;
      last = image->second;
    }
    return true;
  }

  ir::NodeId image(ir::NodeId node) const { return nodes_.at(node); }

  std::set<ir::NodeId> images(const std::set<ir::NodeId>& nodes) const {
    std::set<ir::NodeId> result;
    for (const ir::NodeId node : nodes) result.insert(image(node));
    return result;
  }

 private:
  const ir::Value& value(ir::ValueId id) const { return graph_.values[static_cast<size_t>(id)]; }
  const ir::Node& node(ir::NodeId id) const { return graph_.nodes[static_cast<size_t>(id)]; }

  bool pair_nodes(ir::NodeId from, ir::NodeId to) {
    const auto [entry, added] = nodes_.try_emplace(from, to);
    if (!added) return entry->second == to;
    open_.emplace_back(from, to);
    return images_.insert(to).second;
  }

  bool match(ir::NodeId from, ir::NodeId to) {
    const bool free = facts_.lowered(to) && taken_.nodes.count(to) == 0;
    if (growth_.consulted.at(from) != free) return false;
    for (const ir::ValueId output : node(from).outputs) {
      if (from == to && output != ir::kAbsent && !same_pinned(output, output)) return false;
    }
    if (from == to) return true;
    const ir::Node &a = node(from), &b = node(to);
    if (!same_operator(a, b)) return false;
    for (size_t i = 0; i < a.inputs.size(); ++i) {
      if (!pair_values(a.inputs[i], b.inputs[i])) return false;
    }
    for (size_t i = 0; i < a.outputs.size(); ++i) {
      if (!pair_values(a.outputs[i], b.outputs[i])) return false;
      if (a.outputs[i] == ir::kAbsent) continue;
      if (!same_pinned(a.outputs[i], b.outputs[i])) return false;
      if (!pair_readers(a.outputs[i], b.outputs[i])) return false;
    }
    return true;
  }

  static bool same_operator(const ir::Node& a, const ir::Node& b) {
    return a.def == b.def && a.op == b.op && a.domain == b.domain && a.opset == b.opset &&
           a.inputs.size() == b.inputs.size() && a.outputs.size() == b.outputs.size() &&
           ir::same_attributes(a.attributes, b.attributes);
  }

  bool same_pinned(ir::ValueId from, ir::ValueId to) const {
    return growth_.pinned.count(from) == taken_.pinned.count(to);
  }

  bool pair_values(ir::ValueId from, ir::ValueId to) {
    if (from == ir::kAbsent || to == ir::kAbsent) return from == to;
    const auto [entry, added] = values_.try_emplace(from, to);
    if (!added) return entry->second == to;
    if (!value_images_.insert(to).second) return false;
    return from == to || (same_value(from, to) && pair_producers(from, to));
  }

  bool same_value(ir::ValueId from, ir::ValueId to) const {
    const ir::Value &a = value(from), &b = value(to);
    if (a.dtype != b.dtype || a.shape != b.shape || a.output_index != b.output_index ||
        a.is_constant() != b.is_constant() || a.indexed != b.indexed ||
        a.has_elements != b.has_elements || a.elements != b.elements ||
        facts_.is_output(from) != facts_.is_output(to)) {
      return false;
    }
    const bool small = a.is_constant() && a.constant.size() <= ir::kMaxElements;
    return !small || ir::same_tensor(a.constant, b.constant);
  }

  bool pair_producers(ir::ValueId from, ir::ValueId to) {
    const ir::NodeId a = facts_.producer(from), b = facts_.producer(to);
    if (a < 0 || b < 0) return a == b;
    if (growth_.consulted.count(a)) return pair_nodes(a, b);
    return same_operator(node(a), node(b)) && facts_.recomputed(from) == facts_.recomputed(to);
  }

  bool pair_readers(ir::ValueId from, ir::ValueId to) {
    const auto &a = facts_.consumers(from), &b = facts_.consumers(to);
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i) {
      if (growth_.consulted.count(a[i]) && !pair_nodes(a[i], b[i])) return false;
    }
    return true;
  }

  const NodeFacts& facts_;
  const ir::Graph& graph_;
  const RegionTrace& growth_;
  const Claimed& taken_;
  std::map<ir::NodeId, ir::NodeId> nodes_;
  std::map<ir::ValueId, ir::ValueId> values_;
  std::set<ir::NodeId> images_;
  std::set<ir::ValueId> value_images_;
  std::vector<std::pair<ir::NodeId, ir::NodeId>> open_;
};

}  // namespace

std::optional<RegionTrace> replay_at(ir::NodeId seed, const RegionTrace& growth,
                                     const NodeFacts& facts, const Claimed& taken) {
  Matcher matcher(facts, growth, taken);
  if (!matcher.run(seed)) return std::nullopt;
  RegionTrace moved;
  moved.seed = seed;
  moved.last_reduction = matcher.image(growth.last_reduction);
  moved.owned = matcher.images(growth.owned);
  moved.shared = matcher.images(growth.shared);
  for (const auto& [node, reason] : growth.refused) {
    moved.refused.emplace_back(matcher.image(node), reason);
  }
  moved.fingerprint = growth.fingerprint;
  return moved;
}

}  // namespace redfuser::fuse
