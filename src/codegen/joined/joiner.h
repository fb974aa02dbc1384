// The choice between a kernel that computes several steps of a plan and the steps apart. Internal
// to JoinedSteps.
#pragma once

#include <vector>

#include "codegen/core/step_builder.h"

namespace redfuser::codegen {

// The offer of the steps one after the other.
inline constexpr const char* kApart = "apart";

class Joiner {
 public:
  virtual ~Joiner() = default;
  Joiner(const Joiner&) = delete;
  Joiner& operator=(const Joiner&) = delete;

  // All steps: their offers are the kernel, and "apart". Each class of open sizes has the faster
  // one.
  virtual GpuStep generate() = 0;
  // By one of the candidates.
  virtual GpuStep generate(const KernelConfig& choice) = 0;
  // The choices at these sizes, which the joiner knows too, that of generate() first.
  virtual std::vector<Candidate> candidates(std::span<const int64_t> symbols) = 0;

 protected:
  // `steps` in the plan's order. All must outlive this.
  Joiner(const ir::Graph& graph, std::vector<const fuse::Step*> steps, const Target& target,
         const KnownSizes& sizes, const LeftOut& left_out);

  bool sizes_known() const;
  // The device form of a step by itself, by its default choice.
  GpuStep form_apart(size_t step) const;
  // Adds the forms of the steps apart, for the sizes where `taken` does not hold; null: for all.
  // Their times add up but for the `overlap`.
  void add_apart(std::vector<GpuStep> forms, ir::Expr taken, double overlap = 0);
  // The result with its offers, once the steps apart are there. `runs`: the kernel is taken. Of
  // unknown sizes no offer has a time.
  GpuStep with_offers(const Offer& kernel, bool runs, const std::string& apart_choice = "");

 private:
  const std::vector<const fuse::Step*> steps_;
  const fuse::Step step_;  // all of them
  GpuStep apart_;          // calls and time

 protected:
  StepBuilder builder_;
  ir::ExprPool& pool_;
};

}  // namespace redfuser::codegen
