// Convolutions as products with the matrix of the input's windows (im2col), and as plain sums.
#pragma once

#include "codegen/convolution/convolution_step.h"

namespace redfuser::codegen {

inline constexpr const char* kColumnsFamily = "image_to_columns";
inline constexpr const char* kGroupedFamily = "grouped_convolution";

// Of one group. Windows of one element are a matrix in memory; others are copied to one first.
void add_columns_product(const ConvolutionStep& convolution);

// A thread sums all elements of a result.
void add_plain_sums(const ConvolutionStep& convolution);

}  // namespace redfuser::codegen
