// Scales of quantised tensors.
#pragma once

#include <string>

#include "redfuser/tensor.h"

namespace redfuser {

// An element that is not a number, or with `divides` zero, as text that names the tensor; empty
// where there is none, and for scales that are no numbers or floats of 8 bits.
std::string fault_of_scale(const std::string& name, const Tensor& scale, bool divides);

}  // namespace redfuser
