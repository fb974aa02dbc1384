// The families of reductions outside of cascades, by the columns of their tiles.
#pragma once

#include <span>
#include <vector>

#include "cpu/steps/reduce_plan.h"
#include "cpu/steps/step_form.h"

namespace redfuser::cpu {

std::span<const Family> reduce_families();

std::vector<int64_t> symbols_of(const ir::Graph& graph, const fuse::ReduceStep& step);

// For the families of other steps with the meaning of a reduction.
select::FamilyAnswer offer_reduction(StepForm& form, ReduceColumnsKind kind, std::string_view name,
                                     const ReducePlan::MakeBody& make);
std::shared_ptr<const StepPlan> emit_reduction(StepForm& form, const select::KernelConfig& choice,
                                               ReduceColumnsKind kind, std::string_view name,
                                               const ReducePlan::MakeBody& make);

}  // namespace redfuser::cpu
