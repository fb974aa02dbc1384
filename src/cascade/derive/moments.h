// Sums of polynomials of streamed values in translated form.
#pragma once

#include <vector>

#include "cascade/derive/builder.h"

namespace redfuser::cascade {

// Adds the stage in translated form if it is a polynomial of degree two or more in streamed values;
// false if it is not.
bool derive_moments(StreamingBuilder& builder, size_t stage, const std::vector<Term>& terms);

}  // namespace redfuser::cascade
