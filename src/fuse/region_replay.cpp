#include "fuse/region_replay.h"

#include "ir/same_attribute.h"

namespace redfuser {
namespace {

// Maps nodes and values of one place to those of another, from the seeds along inputs and readers.
class Matcher {
 public:
  Matcher(const GraphFacts& facts, const Growth& growth, const Taken& taken)
      : facts_(facts), graph_(facts.graph()), growth_(growth), taken_(taken) {}

  bool run(NodeId seed) {
    if (!pair_nodes(growth_.seed, seed)) return false;
    while (!open_.empty()) {
      const auto [from, to] = open_.back();
      open_.pop_back();
      if (!match(from, to)) return false;
    }
    // Nodes are tried in the graph's order.
    NodeId last = -1;
    for (const auto& [node, free] : growth_.consulted) {
      const auto image = nodes_.find(node);
      if (image == nodes_.end() || image->second <= last) return false;
      last = image->second;
    }
    return true;
  }

  NodeId image(NodeId node) const { return nodes_.at(node); }

  std::set<NodeId> images(const std::set<NodeId>& nodes) const {
    std::set<NodeId> result;
    for (const NodeId node : nodes) result.insert(image(node));
    return result;
  }

 private:
  const Value& value(ValueId id) const { return graph_.values[static_cast<size_t>(id)]; }
  const Node& node(NodeId id) const { return graph_.nodes[static_cast<size_t>(id)]; }

  bool pair_nodes(NodeId from, NodeId to) {
    const auto [entry, added] = nodes_.try_emplace(from, to);
    if (!added) return entry->second == to;
    open_.emplace_back(from, to);
    return images_.insert(to).second;
  }

  bool match(NodeId from, NodeId to) {
    const bool free = facts_.lowered(to) && taken_.nodes.count(to) == 0;
    if (growth_.consulted.at(from) != free) return false;
    for (const ValueId output : node(from).outputs) {
      if (from == to && output != kAbsent && !same_pinned(output, output)) return false;
    }
    if (from == to) return true;
    const Node &a = node(from), &b = node(to);
    if (!same_operator(a, b)) return false;
    for (size_t i = 0; i < a.inputs.size(); ++i) {
      if (!pair_values(a.inputs[i], b.inputs[i])) return false;
    }
    for (size_t i = 0; i < a.outputs.size(); ++i) {
      if (!pair_values(a.outputs[i], b.outputs[i])) return false;
      if (a.outputs[i] == kAbsent) continue;
      if (!same_pinned(a.outputs[i], b.outputs[i])) return false;
      if (!pair_readers(a.outputs[i], b.outputs[i])) return false;
    }
    return true;
  }

  static bool same_operator(const Node& a, const Node& b) {
    return a.def == b.def && a.op == b.op && a.domain == b.domain && a.opset == b.opset &&
           a.inputs.size() == b.inputs.size() && a.outputs.size() == b.outputs.size() &&
           same_attributes(a.attributes, b.attributes);
  }

  bool same_pinned(ValueId from, ValueId to) const {
    return growth_.pinned.count(from) == taken_.pinned.count(to);
  }

  bool pair_values(ValueId from, ValueId to) {
    if (from == kAbsent || to == kAbsent) return from == to;
    const auto [entry, added] = values_.try_emplace(from, to);
    if (!added) return entry->second == to;
    if (!value_images_.insert(to).second) return false;
    return from == to || (same_value(from, to) && pair_producers(from, to));
  }

  bool same_value(ValueId from, ValueId to) const {
    const Value &a = value(from), &b = value(to);
    if (a.dtype != b.dtype || a.shape != b.shape || a.output_index != b.output_index ||
        a.is_constant() != b.is_constant() || a.indexed != b.indexed ||
        a.has_elements != b.has_elements || a.elements != b.elements ||
        facts_.is_output(from) != facts_.is_output(to)) {
      return false;
    }
    const bool small = a.is_constant() && a.constant.size() <= kMaxElements;
    return !small || same_tensor(a.constant, b.constant);
  }

  bool pair_producers(ValueId from, ValueId to) {
    const NodeId a = facts_.producer(from), b = facts_.producer(to);
    if (a < 0 || b < 0) return a == b;
    if (growth_.consulted.count(a)) return pair_nodes(a, b);
    return same_operator(node(a), node(b)) && facts_.recomputed(from) == facts_.recomputed(to);
  }

  bool pair_readers(ValueId from, ValueId to) {
    const auto &a = facts_.consumers(from), &b = facts_.consumers(to);
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i) {
      if (growth_.consulted.count(a[i]) && !pair_nodes(a[i], b[i])) return false;
    }
    return true;
  }

  const GraphFacts& facts_;
  const Graph& graph_;
  const Growth& growth_;
  const Taken& taken_;
  std::map<NodeId, NodeId> nodes_;
  std::map<ValueId, ValueId> values_;
  std::set<NodeId> images_;
  std::set<ValueId> value_images_;
  std::vector<std::pair<NodeId, NodeId>> open_;
};

}  // namespace

std::optional<Growth> moved_to(NodeId seed, const Growth& growth, const GraphFacts& facts,
                               const Taken& taken) {
  Matcher matcher(facts, growth, taken);
  if (!matcher.run(seed)) return std::nullopt;
  Growth moved;
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

}  // namespace redfuser
