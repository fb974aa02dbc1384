// A pointwise step that is one node, computed by its operator's kernel.
#pragma once

#include <memory>
#include <optional>

#include "cpu/steps/step_form.h"

namespace redfuser::cpu {

// Microseconds by the kernel; nullopt where the step is not one node with its own inputs, where an
// input is neither a constant nor read by the step, without such a kernel or its cost, and without
// room for its values in between.
std::optional<double> operator_time(const StepForm& form);
// Requires a time.
std::shared_ptr<const StepPlan> make_operator_plan(const StepForm& form);

}  // namespace redfuser::cpu
