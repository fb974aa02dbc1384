// A kernel that selects among families at each class of sizes, and the configuration at each size.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "cpu/growing/growing_kernel.h"
#include "cpu/select/divisions.h"
#include "cpu/steps/step_form.h"

namespace redfuser::cpu {

class ChosenKernel final : public Kernel, public GrowingKernel {
 public:
  // `symbols`: those that the sizes of the step depend on. `divisions`: null where there are none.
  ChosenKernel(const ir::Graph& graph, fuse::StepKind kind, std::span<const Family> families,
               std::vector<int64_t> symbols, std::shared_ptr<const Divisions> divisions);

  void run(RunContext& context) const override;
  Selection selection(std::span<const int64_t> symbols, bool tune) const override;
  double estimate(std::span<const int64_t> symbols, int threads) const override;
  // By estimate, of the families that take growing sizes.
  std::shared_ptr<const StepPlan> growing_plan(const GrowingSizes& sizes,
                                               int threads) const override;

 private:
  // A way to compute the step: a family, or a division of the region.
  struct Way {
    const Family* family = nullptr;
    size_t division = 0;  // of no family
    int64_t inner_bytes = 0;
    select::KernelConfig choice;
    select::Offer offer;
  };
  struct Choice {
    std::vector<Way> ways;  // the taken one first
    std::shared_ptr<const StepPlan> plan;
    Selection selection;
  };
  using Key = std::vector<int64_t>;

  Key key_of(std::span<const int64_t> symbols, bool tune) const;
  using Choices = std::deque<std::pair<Key, std::shared_ptr<const Choice>>>;  // of the last sizes

  std::shared_ptr<const Choice> find(const Choices& choices, const Key& key) const;
  void keep(Choices& choices, Key key, std::shared_ptr<const Choice> choice) const;
  std::shared_ptr<const Choice> choose(const RunContext& context) const;
  std::shared_ptr<const Choice> of_class(const RunContext& context) const;
  std::shared_ptr<Choice> by_estimate(StepForm& form, bool emits) const;
  // Gives a way that was taken at other sizes what it has at those of `form`; false if it has
  // nothing.
  bool fit(StepForm& form, Way& way) const;
  // Of the families' best, in the order of their times, and then the refusals.
  std::vector<Way> ways_of(StepForm& form, std::vector<select::Candidate>* others) const;
  void add_divisions(const StepForm& form, std::vector<Way>& ways) const;
  std::shared_ptr<const StepPlan> emit(StepForm& form, const Way& way) const;
  StepForm form_of(std::span<const int64_t> symbols, int threads) const;
  void measure(RunContext& context, StepForm& form, Choice& choice,
               std::vector<select::Candidate> others) const;

  const ir::Graph& graph_;
  fuse::StepKind kind_;
  std::span<const Family> families_;
  std::vector<int64_t> symbols_;
  std::shared_ptr<const Divisions> divisions_;
  const std::shared_ptr<PanelStore> panels_ = std::make_shared<PanelStore>();
  mutable std::mutex mutex_;
  mutable Choices choices_, classes_;  // those of classes have no plan
};

}  // namespace redfuser::cpu
