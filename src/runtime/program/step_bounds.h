// How far a step's value may be from what the unfused operators compute.
#pragma once

#include <string>

#include "redfuser/compare.h"

namespace redfuser::runtime {

// One value, computed from the same inputs by the unfused operators in their own types, and in
// wider floats with the arguments of jumps as they are and moved to either side.
struct ReferenceValues {
  Tensor unfused, wide, up, down;
};

// Compares by the rules of redfuser/verify.h. All tensors have the sizes of `got`.
Comparison compare_with(const std::string& name, const Tensor& got, const ReferenceValues& expected,
                        const Tolerance& tolerance);

}  // namespace redfuser::runtime
