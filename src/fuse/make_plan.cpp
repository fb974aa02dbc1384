#include "fuse/make_plan.h"

#include <algorithm>
#include <map>
#include <queue>

#include "base/error.h"
#include "cascade/visibility/hidden_elements.h"
#include "fuse/elementwise_groups.h"

namespace redfuser::fuse {
namespace {

class Planner {
 public:
  Planner(const ir::Graph& graph, const PlanOptions& options)
      : graph_(graph),
        options_(options),
        facts_(graph),
        regions_(options.fuse ? find_regions(facts_, options.certify, outside(options))
                              : Regions{}),
        demand_(facts_, regions_.fused, options.alone) {}

  Plan run() {
    // Visits groups last to first; a group requests the values that it reads from earlier groups.
    for (ir::ValueId output : graph_.outputs) wanted_.insert(output);
    for (auto node = static_cast<ir::NodeId>(graph_.nodes.size()) - 1; node >= 0; --node)
      visit(node);
    Plan plan;
    plan.steps = ordered();
    for (const Step& step : plan.steps) {
      const auto* alias = std::get_if<AliasStep>(&step.kind);
      if (alias != nullptr) plan.alias_roots[alias->value] = plan.root(alias->source);
    }
    add_frees(plan.steps);
    plan.report.unfused = regions_.unfused;
    add_reports(plan);
    return plan;
  }

  Regions take_regions() { return std::move(regions_); }

 private:
  static std::set<ir::NodeId> outside(const PlanOptions& options) {
    std::set<ir::NodeId> nodes = options.separate;
    nodes.insert(options.alone.begin(), options.alone.end());
    return nodes;
  }

  void visit(ir::NodeId node) {
    const int region = demand_.region_of(node);
    if (region >= 0) return add_region(region);
    if (!facts_.lowered(node)) return add_opaque(node);
    for (ir::ValueId output : graph_.nodes[static_cast<size_t>(node)].outputs) {
      if (output == ir::kAbsent || !(wanted_.count(output) || sized_.count(node))) continue;
      if (graph_.values[static_cast<size_t>(output)].is_constant()) continue;
      add(make_group(facts_, demand_, output, options_.fuse));
    }
  }

  void add(Step step) {
    for (ir::ValueId read : step.reads) wanted_.insert(read);
    const std::set<ir::NodeId> sources = size_sources(step);
    sized_.insert(sources.begin(), sources.end());
    step.sized_by.assign(sources.begin(), sources.end());
    step.label = label_of(step.nodes);
    steps_.push_back(std::move(step));
  }

  // Nodes of other steps whose run-time sizes the step uses.
  std::set<ir::NodeId> size_sources(const Step& step) const {
    std::set<ir::NodeId> sources;
    for (ir::NodeId node : step.nodes) {
      const auto& own = facts_.size_sources(node);
      sources.insert(own.begin(), own.end());
    }
    for (ir::NodeId node : step.nodes) sources.erase(node);
    return sources;
  }

  // A region has the place of its last node, which is live.
  void add_region(int number) {
    if (!emitted_.insert(number).second) return;
    const Region& region = regions_.fused[static_cast<size_t>(number)];
    Step step;
    CascadeStep cascade{region.derivation.streaming, number};
    for (const cascade::CascadeOutput& output : cascade.streaming.cascade.outputs) {
      step.writes.push_back(output.value);
    }
    step.kind = std::move(cascade);
    std::set<ir::ValueId> reads = region.reads();
    for (const auto* nodes : {&region.owned, &region.shared}) {
      for (ir::NodeId node : *nodes) {
        step.nodes.push_back(node);
        if (!facts_.binds(node)) continue;
        step.binds.push_back(node);
        reads.insert(facts_.reads(node).begin(), facts_.reads(node).end());
      }
    }
    std::sort(step.nodes.begin(), step.nodes.end());
    step.reads.assign(reads.begin(), reads.end());
    add(std::move(step));
  }

  void add_opaque(ir::NodeId node) {
    Step step;
    step.kind = OpaqueStep{node};
    step.nodes = {node};
    bool wanted = sized_.count(node) > 0;
    for (ir::ValueId output : graph_.nodes[static_cast<size_t>(node)].outputs) {
      if (output == ir::kAbsent) continue;
      step.writes.push_back(output);
      wanted |= wanted_.count(output) > 0;
    }
    if (!wanted) return;
    const auto& reads = facts_.reads(node);
    step.reads.assign(reads.begin(), reads.end());
    add(std::move(step));
  }

  std::string label_of(const std::vector<ir::NodeId>& nodes) const {
    std::vector<std::string> names;
    for (ir::NodeId node : nodes) {
      const std::string& name = graph_.nodes[static_cast<size_t>(node)].name;
      // A merged node's name is the list of the original names.
      const bool told = std::any_of(names.begin(), names.end(), [&](const std::string& other) {
        return fmt::format(" {} ", other).find(fmt::format(" {} ", name)) != std::string::npos;
      });
      if (!told) names.push_back(name);
    }
    std::string label;
    for (const std::string& name : names) label += (label.empty() ? "" : " ") + name;
    return label;
  }

  // Kahn's algorithm, the earliest node first.
  std::vector<Step> ordered() {
    std::map<ir::ValueId, size_t> writer;
    std::map<ir::NodeId, size_t> binder;
    for (size_t i = 0; i < steps_.size(); ++i) {
      for (ir::ValueId value : steps_[i].writes) writer[value] = i;
      for (ir::NodeId node : steps_[i].nodes) {
        if (facts_.binds(node)) binder.emplace(node, i);
      }
    }
    std::vector<std::vector<size_t>> followers(steps_.size());
    std::vector<int> missing(steps_.size());
    for (size_t i = 0; i < steps_.size(); ++i) {
      for (ir::ValueId read : steps_[i].reads) {
        auto found = writer.find(read);
        if (found == writer.end() || found->second == i) continue;
        followers[found->second].push_back(i);
        ++missing[i];
      }
      for (const ir::NodeId node : steps_[i].sized_by) {
        const auto found = binder.find(node);
        RF_CHECK(found != binder.end(), "no step binds the sizes that another one uses");
        if (found->second == i) continue;
        followers[found->second].push_back(i);
        ++missing[i];
      }
    }
    auto key = [&](size_t i) { return std::make_pair(steps_[i].nodes.back(), i); };
    std::set<std::pair<ir::NodeId, size_t>> ready;
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (missing[i] == 0) ready.insert(key(i));
    }
    std::vector<Step> result;
    while (!ready.empty()) {
      const size_t i = ready.begin()->second;
      ready.erase(ready.begin());
      for (size_t follower : followers[i]) {
        if (--missing[follower] == 0) ready.insert(key(follower));
      }
      result.push_back(std::move(steps_[i]));
    }
    RF_CHECK(result.size() == steps_.size(), "the steps of the plan form a cycle");
    return result;
  }

  void add_frees(std::vector<Step>& steps) const {
    std::map<ir::ValueId, size_t> last;
    for (size_t i = 0; i < steps.size(); ++i) {
      for (ir::ValueId value : steps[i].writes) last[value] = i;
      for (ir::ValueId value : steps[i].reads) last[value] = i;
    }
    for (auto& [value, step] : last) {
      const ir::Value& v = graph_.values[static_cast<size_t>(value)];
      if (facts_.is_output(value) || v.is_constant() || v.producer < 0) continue;
      steps[step].frees.push_back(value);
    }
  }

  void add_reports(Plan& plan) {
    for (Step& step : plan.steps) {
      auto* cascade = std::get_if<CascadeStep>(&step.kind);
      if (!cascade) continue;
      const Region& region = regions_.fused[static_cast<size_t>(cascade->report)];
      cascade::FusedReport report;
      report.id = static_cast<int>(plan.report.fused.size());
      report.region_class = region.region_class;
      for (ir::NodeId node : step.nodes) {
        const std::string& name = graph_.nodes[static_cast<size_t>(node)].name;
        if (std::find(report.nodes.begin(), report.nodes.end(), name) == report.nodes.end()) {
          report.nodes.push_back(name);
        }
        report.sources.push_back(graph_.nodes[static_cast<size_t>(node)].source);
      }
      std::sort(report.sources.begin(), report.sources.end());
      report.sources.erase(std::unique(report.sources.begin(), report.sources.end()),
                           report.sources.end());
      report.stages = region.derivation.stages;
      report.cases = region.certificate.cases;
      report.hidden = region.certificate.hidden;
      const ir::Expr hidden = cascade::hidden_elements(*graph_.pool, region.derivation.streaming);
      if (!hidden->is_constant(0)) {
        report.visible = to_string(*graph_.pool, graph_.pool->make(ir::ExprOp::Not, {hidden}));
      }
      report.max_error = region.certificate.max_error;
      cascade->report = report.id;
      plan.report.fused.push_back(std::move(report));
    }
  }

  const ir::Graph& graph_;
  PlanOptions options_;
  NodeFacts facts_;
  Regions regions_;
  Demand demand_;
  std::set<ir::ValueId> wanted_;
  std::set<ir::NodeId> sized_;  // nodes whose run-time sizes later steps use
  std::set<int> emitted_;
  std::vector<Step> steps_;
};

}  // namespace

Plan make_plan(std::shared_ptr<const ir::Graph> graph, const PlanOptions& options,
               Regions* regions) {
  Planner planner(*graph, options);
  Plan plan = planner.run();
  plan.graph = std::move(graph);
  if (regions) *regions = planner.take_regions();
  return plan;
}

}  // namespace redfuser::fuse
