#include "fuse/alternatives.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "fuse/make_plan.h"
#include "fuse/node_facts.h"

namespace redfuser::fuse {

std::vector<ir::NodeId> region_nodes(const ir::Graph& graph, const Step& step) {
  std::set<ir::NodeId> nodes(step.nodes.begin(), step.nodes.end());
  std::vector<ir::NodeId> stack = step.nodes;
  while (!stack.empty()) {
    const ir::Node& node = graph.nodes[static_cast<size_t>(stack.back())];
    stack.pop_back();
    for (const ir::ValueId input : node.inputs) {
      if (input == ir::kAbsent) continue;
      const ir::Value& value = graph.values[static_cast<size_t>(input)];
      if (!value.indexed || value.is_constant() || value.producer < 0) continue;
      if (nodes.insert(value.producer).second) stack.push_back(value.producer);
    }
  }
  return {nodes.begin(), nodes.end()};
}

namespace {

// The most contractions of a region: one computes the streamed elements, and one sums them with
// weights. A region with one contraction holds its operand or its result in memory, as a region
// without any does.
constexpr size_t kKept = 2;

// The nodes as a graph: values keep their numbers, node i is `nodes[i]` of the whole.
std::shared_ptr<const ir::Graph> part_of(const ir::Graph& graph, const Step& step,
                                         const std::vector<ir::NodeId>& nodes) {
  auto part = std::make_shared<ir::Graph>();
  part->pool = graph.pool;
  part->name = graph.name;
  part->values = graph.values;
  part->inputs = graph.inputs;
  part->outputs = step.writes;
  for (ir::Value& value : part->values) value.producer = -1;
  for (const ir::NodeId node : nodes) {
    const auto id = static_cast<ir::NodeId>(part->nodes.size());
    part->nodes.push_back(graph.nodes[static_cast<size_t>(node)]);
    for (const ir::ValueId output : part->nodes.back().outputs) {
      if (output != ir::kAbsent) part->values[static_cast<size_t>(output)].producer = id;
    }
  }
  for (const ir::ValueId read : step.reads) {
    if (part->values[static_cast<size_t>(read)].is_constant()) continue;
    if (std::find(part->inputs.begin(), part->inputs.end(), read) == part->inputs.end()) {
      part->inputs.push_back(read);
    }
  }
  return part;
}

class Divider {
 public:
  Divider(const ir::Graph& graph, const Step& step)
      : step_(step),
        nodes_(region_nodes(graph, step)),
        part_(part_of(graph, step, nodes_)),
        facts_(*part_) {}

  std::vector<Alternative> run() {
    const std::vector<ir::NodeId> contractions = nodes_that(&NodeFacts::contracts);
    const std::vector<ir::NodeId> gathering = nodes_that(&NodeFacts::gathers);
    for (const std::set<ir::NodeId>& apart : subsets(contractions)) {
      PlanOptions options;
      options.separate = apart;
      add(apart.size() == contractions.size() ? "products apart" : name_of(apart), options);
    }
    if (!gathering.empty()) {
      PlanOptions options;
      options.separate.insert(contractions.begin(), contractions.end());
      options.alone.insert(gathering.begin(), gathering.end());
      add(name_of(options.alone), options);
    }
    if (contractions.empty() && !nodes_that(&NodeFacts::reduces).empty()) {
      PlanOptions unfused;
      unfused.fuse = false;
      add("unfused", unfused);
    }
    return std::move(found_);
  }

 private:
  std::vector<ir::NodeId> nodes_that(bool (NodeFacts::*has)(ir::NodeId) const) const {
    std::vector<ir::NodeId> result;
    for (size_t i = 0; i < part_->nodes.size(); ++i) {
      const auto node = static_cast<ir::NodeId>(i);
      if (facts_.live(node) && (facts_.*has)(node)) result.push_back(node);
    }
    return result;
  }

  // All of them, and all but kKept.
  static std::vector<std::set<ir::NodeId>> subsets(const std::vector<ir::NodeId>& nodes) {
    std::vector<std::set<ir::NodeId>> result;
    if (nodes.empty()) return result;
    result.emplace_back(nodes.begin(), nodes.end());
    if (nodes.size() <= kKept) return result;
    for (size_t a = 0; a < nodes.size(); ++a) {
      for (size_t b = a + 1; b < nodes.size(); ++b) {
        result.push_back(result.front());
        result.back().erase(nodes[a]);
        result.back().erase(nodes[b]);
      }
    }
    return result;
  }

  std::string name_of(const std::set<ir::NodeId>& apart) const {
    std::string names;
    for (const ir::NodeId node : apart) {
      names += (names.empty() ? "" : ", ") + part_->nodes[static_cast<size_t>(node)].name;
    }
    return fmt::format("\"{}\" apart", names);
  }

  void add(const std::string& name, const PlanOptions& options) {
    Plan plan = make_plan(part_, options);
    if (!complete(plan)) return;
    for (Step& step : plan.steps) {
      for (auto* nodes : {&step.nodes, &step.binds, &step.sized_by}) {
        for (ir::NodeId& node : *nodes) node = nodes_[static_cast<size_t>(node)];
      }
    }
    std::string shape;
    for (const Step& step : plan.steps)
      shape += fmt::format("{} {};", step.kind.index(), fmt::join(step.nodes, ","));
    if (!shapes_.insert(shape).second) return;
    found_.push_back({name, std::move(plan.steps)});
  }

  // More than one step; nothing is read that neither the region reads nor a step before writes; no
  // two outputs have the same bytes, and none those of a value that the region reads.
  bool complete(const Plan& plan) const {
    if (plan.steps.size() < 2) return false;
    std::set<ir::ValueId> known(step_.reads.begin(), step_.reads.end());
    for (const Step& step : plan.steps) {
      if (!step.binds.empty()) return false;
      for (const ir::ValueId read : step.reads) {
        if (!known.count(read) && !part_->values[static_cast<size_t>(read)].is_constant()) {
          return false;
        }
      }
      known.insert(step.writes.begin(), step.writes.end());
    }
    std::set<ir::ValueId> roots(step_.reads.begin(), step_.reads.end());
    return std::all_of(step_.writes.begin(), step_.writes.end(), [&](ir::ValueId output) {
      const ir::ValueId root = plan.root(output);
      return known.count(output) && !part_->values[static_cast<size_t>(root)].is_constant() &&
             roots.insert(root).second;
    });
  }

  const Step& step_;
  const std::vector<ir::NodeId> nodes_;
  const std::shared_ptr<const ir::Graph> part_;
  const NodeFacts facts_;
  std::set<std::string> shapes_;
  std::vector<Alternative> found_;
};

}  // namespace

bool may_divide(const ir::Graph& graph, const Step& step) {
  if (step.nodes.size() < 2) return false;
  if (const auto* map = std::get_if<MapStep>(&step.kind)) {
    return std::any_of(map->outputs.begin(), map->outputs.end(),
                       [&](const auto& output) { return reads_around(graph, output.body); });
  }
  return std::holds_alternative<CascadeStep>(step.kind) ||
         std::holds_alternative<ReduceStep>(step.kind);
}

std::vector<Alternative> alternatives(const ir::Graph& graph, const Step& step) {
  return Divider(graph, step).run();
}

}  // namespace redfuser::fuse
