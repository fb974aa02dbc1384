// Convolutions of 16-bit floats on sm_90a as products of filters and of windows, which TMA takes
// from images (im2col mode), by the tiles of src/device/product/product_loop.cuh.
#pragma once

#include <string>
#include <variant>

#include "codegen/convolution/convolution_form.h"

namespace redfuser::codegen {

inline constexpr const char* kWindowProductFamily = "convolution_tile";

// The form, with copies where an operand's channels are not last; or why there is none.
std::variant<ConvolutionForm, std::string> window_product_form(const ConvolutionStep& convolution);
// Microseconds by estimate of the kernel, without copies, at these sizes; infinite if they are not
// known.
double window_product_time(const ConvolutionStep& convolution, const ConvolutionForm& form,
                           const KnownSizes& sizes);
void add_window_product(const ConvolutionStep& convolution, const ConvolutionForm& form);

}  // namespace redfuser::codegen
