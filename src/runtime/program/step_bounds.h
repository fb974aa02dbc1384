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

// The same, with `witness` in the place of expected.unfused for what fails otherwise: the
// operators' values by kernels that sum in the type's own precision. Such sums may err by more than
// the rounding of every result and pass an edge, in one of 100 elements (or in one); a witness that
// fails in more counts for nothing.
Comparison compare_with(const std::string& name, const Tensor& got, const ReferenceValues& expected,
                        const Tensor& witness, const Tolerance& tolerance);

}  // namespace redfuser::runtime
