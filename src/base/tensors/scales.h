// Scales of quantised tensors.
#pragma once

#include <string>

#include "redfuser/tensor.h"

namespace redfuser {

// Names the first element of a scale that is NaN, or with `divides` zero. Empty where every element
// is valid. Scales of integers and of 8-bit floats are not checked.
std::string fault_of_scale(const std::string& name, const Tensor& scale, bool divides);

}  // namespace redfuser
