#include "cpu/steps/cascade/parts_plan.h"

#include <algorithm>

#include "cpu/steps/map/map_families.h"

namespace redfuser::cpu {

PartsPlan::PartsPlan(const StepForm& form, std::shared_ptr<const CascadeParts> parts,
                     std::span<const Family> families)
    : parts_(std::move(parts)) {
  for (const fuse::StepKind& kind : parts_->steps) {
    StepForm step{form.graph, kind, form.symbols, form.threads};
    step.inner = parts_->inner;
    const bool pointwise = std::holds_alternative<fuse::MapStep>(kind);
    const Family* best = nullptr;
    select::Candidate choice;
    for (const Family& family : pointwise ? map_families() : families) {
      const select::FamilyAnswer answer = family.offer(step);
      if (!answer.refusal.empty() || answer.candidates.empty()) continue;
      const select::Candidate& candidate = answer.candidates.front();
      if (best != nullptr && candidate.time >= choice.time) continue;
      best = &family;
      choice = candidate;
    }
    if (best == nullptr) {
      time_ = HUGE_VAL;
      return;
    }
    time_ += choice.time;
    plans_.push_back(best->emit(step, choice.choice));
  }
}

void PartsPlan::run(RunContext& context) const {
  std::vector<Tensor> inner;
  for (const InnerValue& value : parts_->inner) {
    inner.push_back(value.source == ir::kAbsent ? Tensor(value.dtype, value.dims)
                                                : context.value(value.source).reshaped(value.dims));
  }
  RunContext own = context;
  own.inner = inner;
  for (const auto& plan : plans_) plan->run(own);
  context.inner_bytes = std::max(context.inner_bytes, inner_bytes());
}

int64_t PartsPlan::inner_bytes() const { return bytes_of(parts_->inner); }

}  // namespace redfuser::cpu
