// The families of the kernels that a session runs.
#pragma once

#include <string>

#include "redfuser/redfuser.h"

namespace redfuser::testing {

inline bool has_family(const Session& session, const std::string& family) {
  for (const StepFacts& facts : session.step_facts()) {
    for (const StepKernel& kernel : facts.kernels) {
      if (kernel.family == family) return true;
    }
  }
  return false;
}

}  // namespace redfuser::testing
