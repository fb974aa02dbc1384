// Error bounds of a step's values, from the unfused operators.
#pragma once

#include <string>

#include "redfuser/compare.h"

namespace redfuser::runtime {

// One value by the unfused operators: in their own types, in wider floats, and in wider floats with
// the arguments of jumps moved to either side. All use the same inputs.
struct ReferenceValues {
  Tensor unfused, wide, up, down;
};

// Compares by the rules of redfuser/verify.h. All tensors have the sizes of `got`.
Comparison compare_with(const std::string& name, const Tensor& got, const ReferenceValues& expected,
                        const Tolerance& tolerance);

// The same, but a value that fails is compared again with `witness` instead of expected.unfused:
// values by kernels that sum in the type's own precision. The witness counts only if it fails the
// first comparison itself in at most one of 100 elements (or in one).
Comparison compare_with(const std::string& name, const Tensor& got, const ReferenceValues& expected,
                        const Tensor& witness, const Tolerance& tolerance);

}  // namespace redfuser::runtime
