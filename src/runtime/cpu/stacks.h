// Slices of a tensor along one axis, and tensors stacked along a new one.
#pragma once

#include <string>
#include <vector>

#include "redfuser/tensor.h"

namespace redfuser::runtime {

// Element `at` of `axis`, which the result does not have. It shares the tensor's bytes where they
// are contiguous.
Tensor slice_of(const Tensor& tensor, int64_t axis, int64_t at);

// `parts`, at least one, along a new axis, which may be negative; `backwards` the last one first.
// UserError, starting with `where`, for parts of different types or sizes.
Tensor stack_of(const std::vector<Tensor>& parts, int64_t axis, bool backwards,
                const std::string& where);

}  // namespace redfuser::runtime
