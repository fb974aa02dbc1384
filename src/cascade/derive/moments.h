// Sums of polynomials of streamed values in translated form.
#pragma once

#include <vector>

#include "cascade/derive/builder.h"

namespace redfuser::cascade {

// True if the stage is a polynomial of degree two or more in streamed values, and was added in
// translated form.
bool derive_moments(StreamingBuilder& builder, size_t stage, const std::vector<Term>& terms);

}  // namespace redfuser::cascade
