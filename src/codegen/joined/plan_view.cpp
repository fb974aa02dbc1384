#include "codegen/joined/plan_view.h"

#include <algorithm>

namespace redfuser::codegen {

bool overlap(const Values& a, const Values& b) {
  return std::any_of(a.begin(), a.end(), [&](ir::ValueId value) { return b.count(value) > 0; });
}

void Touched::add(const Touched& other) {
  reads.insert(other.reads.begin(), other.reads.end());
  writes.insert(other.writes.begin(), other.writes.end());
}

bool depend(const Touched& a, const Touched& b) {
  return overlap(a.writes, b.reads) || overlap(a.writes, b.writes) || overlap(a.reads, b.writes);
}

bool are_alike(const ir::Value& a, const ir::Value& b) {
  return a.dtype == b.dtype && a.shape == b.shape;
}

bool may_be_alike(const ir::Value& a, const ir::Value& b) {
  if (a.dtype != b.dtype || a.shape.size() != b.shape.size()) return false;
  for (size_t i = 0; i < a.shape.size(); ++i) {
    const bool constant = a.shape[i]->is_constant() && b.shape[i]->is_constant();
    if (constant && a.shape[i] != b.shape[i]) return false;
  }
  return true;
}

PlanView::PlanView(const ir::Graph& of, const fuse::Plan& of_plan, const Target& on,
                   const std::set<size_t>& of_host)
    : graph(of), plan(of_plan), target(on), on_host(of_host) {
  inputs.insert(graph.inputs.begin(), graph.inputs.end());
  for (const ir::ValueId output : graph.outputs) outputs.insert(plan.root(output));
  const auto owners = [&](const std::vector<ir::ValueId>& of_step) {
    Values result;
    for (const ir::ValueId id : of_step) {
      const ir::ValueId root = plan.root(id);
      if (!value(root).is_constant()) result.insert(root);
    }
    return result;
  };
  for (const fuse::Step& step : plan.steps) {
    touched.push_back({owners(step.reads), owners(step.writes)});
  }
}

bool PlanView::conflicts(const Touched& group, size_t step) const {
  const Touched& other = touched[step];
  if (depend(group, other)) return true;
  const Values& read = group.reads;
  return std::any_of(other.writes.begin(), other.writes.end(), [&](ir::ValueId written) {
    const Values states = overwritten(written, other.reads, are_alike);
    return !states.empty() && std::includes(read.begin(), read.end(), states.begin(), states.end());
  });
}

}  // namespace redfuser::codegen
