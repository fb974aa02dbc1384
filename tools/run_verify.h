// --verify: the fused program against the unfused one, value by value.
#pragma once

#include <string>
#include <vector>

#include "run_options.h"

namespace redfuser::tools {

struct Verification {
  int compared = 0;                // values that both programs compute
  std::vector<Comparison> failed;  // in the order in which the fused program computes them
  std::string first_label;         // the step that computes the first of them
  std::string first_kind;
};

// Runs both and compares every value that a step of the fused program leaves behind.
Verification verify_fusions(const Model& model, const Program& fused, const NamedTensors& inputs,
                            const RunOptions& options);

}  // namespace redfuser::tools
