#include "codegen/joined/joined_steps.h"

#include "base/error.h"
#include "codegen/joined/block_maps_joiner.h"
#include "codegen/joined/chain_joiner.h"
#include "codegen/joined/maps_joiner.h"
#include "codegen/joined/rows_joiner.h"
#include "codegen/select/generate.h"

namespace redfuser::codegen {
namespace {

// In place of a family, of a step that the leader of its group computes.
const char* name_in(JoinedGroup::Kind kind) {
  switch (kind) {
    case JoinedGroup::Kind::ThinRows:
      return kThinRowsStep;
    case JoinedGroup::Kind::Maps:
      return kMapsStep;
    case JoinedGroup::Kind::BlockMaps:
      return kBlockMapsStep;
    case JoinedGroup::Kind::Chain:
      return kChainStep;
  }
  internal_error("no kind of joined steps");
}

}  // namespace

JoinedSteps::JoinedSteps(const ir::Graph& graph, const fuse::Plan& plan, const Target& target,
                         const std::set<size_t>& on_host) {
  for (JoinedGroup& group : find_joined(graph, plan, target, on_host)) {
    const size_t leader = group.steps.back();
    for (const size_t step : group.steps) {
      if (step != leader) leaders_[step] = leader;
    }
    groups_[leader] = std::move(group);
  }
}

const JoinedGroup* JoinedSteps::group_of(size_t leader) const {
  const auto found = groups_.find(leader);
  return found == groups_.end() ? nullptr : &found->second;
}

std::optional<size_t> JoinedSteps::taken_by(size_t step) const {
  const auto found = leaders_.find(step);
  return found == leaders_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<size_t> JoinedSteps::done_by(size_t step) const {
  if (taken_by(step)) return {};
  const JoinedGroup* group = group_of(step);
  return group == nullptr ? std::vector<size_t>{step} : group->steps;
}

bool JoinedSteps::writes_results(size_t step) const {
  const auto leader = taken_by(step);
  if (!leader) return true;
  const JoinedGroup::Kind kind = groups_.at(*leader).kind;
  return kind == JoinedGroup::Kind::Maps || kind == JoinedGroup::Kind::BlockMaps;
}

void JoinedSteps::separate(size_t leader) {
  const JoinedGroup* group = group_of(leader);
  if (group == nullptr) return;
  for (const size_t step : group->steps) leaders_.erase(step);
  groups_.erase(leader);
}

std::unique_ptr<Joiner> JoinedSteps::joiner(const ir::Graph& graph, const fuse::Plan& plan,
                                            size_t leader, const Target& target,
                                            const KnownSizes& sizes,
                                            const LeftOut& left_out) const {
  const JoinedGroup* group = group_of(leader);
  if (group == nullptr) return nullptr;
  std::vector<const fuse::Step*> steps;
  for (const size_t step : group->steps) steps.push_back(&plan.steps[step]);
  if (group->kind == JoinedGroup::Kind::Maps) {
    return maps_joiner(graph, std::move(steps), target, sizes, left_out);
  }
  if (group->kind == JoinedGroup::Kind::BlockMaps) {
    return block_maps_joiner(graph, std::move(steps), target, sizes, left_out);
  }
  const auto pair = group->kind == JoinedGroup::Kind::Chain ? chain_joiner : rows_joiner;
  return pair(graph, plan, *steps[0], *steps[1], target, sizes, left_out);
}

GpuStep JoinedSteps::generate(const ir::Graph& graph, const fuse::Plan& plan, size_t step,
                              const Target& target, const KnownSizes& sizes,
                              const LeftOut& left_out) const {
  if (const auto leader = taken_by(step)) {
    GpuStep result;
    result.pool = graph.pool;
    result.offers = {{name_in(groups_.at(*leader).kind), "", 0, "", false, ""}};
    return result;
  }
  const auto joined = joiner(graph, plan, step, target, sizes, left_out);
  return joined ? joined->generate()
                : codegen::generate(graph, plan.steps[step], target, sizes, left_out);
}

GpuStep JoinedSteps::generate(const ir::Graph& graph, const fuse::Plan& plan, size_t step,
                              const Target& target, const KernelConfig& choice) const {
  RF_CHECK(!taken_by(step), "step {} has no choices", step);
  const auto joined = joiner(graph, plan, step, target, {}, {});
  return joined ? joined->generate(choice)
                : codegen::generate(graph, plan.steps[step], target, choice);
}

std::vector<Candidate> JoinedSteps::kernel_configs(const ir::Graph& graph, const fuse::Plan& plan,
                                                   size_t step, const Target& target,
                                                   std::span<const int64_t> symbols,
                                                   const LeftOut& left_out) const {
  if (taken_by(step)) return {};
  const auto joined = joiner(graph, plan, step, target, KnownSizes(symbols), left_out);
  return joined ? joined->candidates(symbols)
                : codegen::kernel_configs(graph, plan.steps[step], target, symbols, left_out);
}

std::vector<Offer> JoinedSteps::offers_at(const ir::Graph& graph, const fuse::Plan& plan,
                                          size_t step, const Target& target,
                                          const KnownSizes& sizes, const GpuStep& form) const {
  if (taken_by(step)) return form.offers;
  if (group_of(step) == nullptr) {
    return codegen::offers_at(graph, plan.steps[step], target, sizes, form);
  }
  return generate(graph, plan, step, target, sizes, form.left_out).offers;
}

}  // namespace redfuser::codegen
