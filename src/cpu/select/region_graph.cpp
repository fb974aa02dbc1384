#include "cpu/select/region_graph.h"

#include <algorithm>
#include <set>

#include "fuse/alternatives.h"

namespace redfuser::cpu {
namespace {

class Renumbering {
 public:
  explicit Renumbering(const std::set<ir::ValueId>& values)
      : values_(values.begin(), values.end()) {}

  const std::vector<ir::ValueId>& values() const { return values_; }
  void apply(std::vector<ir::ValueId>& ids) const {
    for (ir::ValueId& id : ids) {
      if (id != ir::kAbsent) id = number_of(id);
    }
  }

 private:
  ir::ValueId number_of(ir::ValueId id) const {
    const auto found = std::lower_bound(values_.begin(), values_.end(), id);
    return static_cast<ir::ValueId>(found - values_.begin());
  }

  std::vector<ir::ValueId> values_;
};

Renumbering numbers_of(const ir::Graph& graph, const fuse::Step& step,
                       const std::vector<ir::NodeId>& nodes) {
  std::set<ir::ValueId> values(graph.inputs.begin(), graph.inputs.end());
  values.insert(step.reads.begin(), step.reads.end());
  values.insert(step.writes.begin(), step.writes.end());
  for (const ir::NodeId id : nodes) {
    const ir::Node& node = graph.nodes[static_cast<size_t>(id)];
    values.insert(node.inputs.begin(), node.inputs.end());
    values.insert(node.outputs.begin(), node.outputs.end());
  }
  values.erase(ir::kAbsent);
  return Renumbering(values);
}

}  // namespace

RegionGraph region_graph(const ir::Graph& graph, const fuse::Step& step) {
  const std::vector<ir::NodeId> nodes = fuse::region_nodes(graph, step);
  const Renumbering numbers = numbers_of(graph, step, nodes);
  auto part = std::make_shared<ir::Graph>();
  part->pool = std::make_shared<ir::ExprPool>(graph.pool);
  part->name = graph.name;
  for (const ir::ValueId id : numbers.values()) {
    part->values.push_back(graph.values[static_cast<size_t>(id)]);
    part->values.back().producer = -1;
  }
  RegionGraph region;
  region.step.label = step.label;
  region.step.reads = step.reads;
  region.step.writes = step.writes;
  numbers.apply(region.step.reads);
  numbers.apply(region.step.writes);
  for (const ir::NodeId id : nodes) {
    const auto number = static_cast<ir::NodeId>(part->nodes.size());
    ir::Node& node = part->nodes.emplace_back(graph.nodes[static_cast<size_t>(id)]);
    numbers.apply(node.inputs);
    numbers.apply(node.outputs);
    for (const ir::ValueId output : node.outputs) {
      if (output != ir::kAbsent) part->values[static_cast<size_t>(output)].producer = number;
    }
    const bool own = std::find(step.nodes.begin(), step.nodes.end(), id) != step.nodes.end();
    if (own) region.step.nodes.push_back(number);
  }
  part->inputs = graph.inputs;
  numbers.apply(part->inputs);
  part->outputs = region.step.writes;
  region.graph = std::move(part);
  region.values = numbers.values();
  return region;
}

}  // namespace redfuser::cpu
