// Constants in 16-bit floats.
#pragma once

#include "redfuser/tensor.h"

namespace redfuser::passes {

enum class NarrowFit {
  Fits,
  Overflows,  // finite elements beyond the range
  Unfit,      // near the limit of the range, flushed to zero, or inexact integers
};

// Whether an fp32 tensor may be rounded to `to` (Float16 or BFloat16).
NarrowFit narrow_fit(const Tensor& tensor, DType to);

// Rounded to nearest even.
Tensor narrowed(const Tensor& tensor, DType to);

// The largest magnitude of the finite elements.
double largest_finite(const Tensor& tensor);

}  // namespace redfuser::passes
