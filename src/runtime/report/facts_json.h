// What is known of a step, as JSON.
#pragma once

#include "redfuser/step_facts.h"
#include "runtime/report/equations.h"

namespace redfuser::runtime {

// The fields of StepFacts by their names; numbers that are not known are null.
Json facts_json(const StepFacts& facts);

}  // namespace redfuser::runtime
