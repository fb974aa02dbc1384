// Steps of a plan that a GPU computes as one: the rows of a cascade with the product of few rows
// that reads them, two chained products, elementwise steps that do not depend on each other, and
// such steps with the attention that reads them.
// The last one of such steps, their leader, has the calls of all; the others have none.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "codegen/core/kernel_config.h"
#include "codegen/joined/find_joined.h"

namespace redfuser::codegen {

class Joiner;

class JoinedSteps {
 public:
  // None.
  JoinedSteps() = default;
  // The groups of find_joined, by the steps' structure alone.
  JoinedSteps(const ir::Graph& graph, const fuse::Plan& plan, const Target& target,
              const std::set<size_t>& on_host);

  // The group that the step with this number leads; null: none.
  const JoinedGroup* group_of(size_t leader) const;
  // The step that computes the step with this number, where that is another one.
  std::optional<size_t> taken_by(size_t step) const;
  // The step in whose place of the plan's order this one is computed: itself, or its leader.
  size_t place_of(size_t step) const { return taken_by(step).value_or(step); }
  // The steps that are computed once this one has been, in order.
  std::vector<size_t> done_by(size_t step) const;
  // Whether every run writes the step's results to memory. Those of a chain's first product, and of
  // rows that a product alone reads, may stay on the chip.
  bool writes_results(size_t step) const;
  // Each step of the leader's group is computed alone.
  void separate(size_t leader);

  // As codegen::generate, kernel_configs and offers_at, of a step of the plan. The kernels of a
  // group are compared with its steps apart, by estimate, for each class of open sizes.
  GpuStep generate(const ir::Graph& graph, const fuse::Plan& plan, size_t step,
                   const Target& target, const KnownSizes& sizes = {},
                   const LeftOut& left_out = {}) const;
  GpuStep generate(const ir::Graph& graph, const fuse::Plan& plan, size_t step,
                   const Target& target, const KernelConfig& choice) const;
  std::vector<Candidate> kernel_configs(const ir::Graph& graph, const fuse::Plan& plan, size_t step,
                                        const Target& target, std::span<const int64_t> symbols,
                                        const LeftOut& left_out = {}) const;
  std::vector<Offer> offers_at(const ir::Graph& graph, const fuse::Plan& plan, size_t step,
                               const Target& target, const KnownSizes& sizes,
                               const GpuStep& form) const;

 private:
  // Of the group that the step leads; null: it leads none.
  std::unique_ptr<Joiner> joiner(const ir::Graph& graph, const fuse::Plan& plan, size_t leader,
                                 const Target& target, const KnownSizes& sizes,
                                 const LeftOut& left_out) const;

  std::map<size_t, JoinedGroup> groups_;  // by leader
  std::map<size_t, size_t> leaders_;      // of the other steps
};

}  // namespace redfuser::codegen
