// One-dimensional resampling tables: interpolation is separable, so Resize applies one per axis.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cpu/opaque/opaque.h"

namespace redfuser::cpu {

// How output positions map to the input, and the weights of neighbours: the attributes of ONNX
// Resize.
struct ResampleOptions {
  std::string mode = "nearest";            // nearest, linear, cubic
  std::string coordinates = "half_pixel";  // coordinate_transformation_mode
  std::string nearest = "round_prefer_floor";
  double cubic_a = -0.75;
  bool antialias = false, exclude_outside = false;
};

// One resized axis: output = floor(scale * input), or the size from the input `sizes`. `begin` and
// `end` are the region of interest in [0, 1] of tf_crop_and_resize.
struct ResampleAxis {
  int64_t input = 1, output = 1;
  double scale = 1, begin = 0, end = 1;
};

// Output position o is Σ weight[t] · input[index[t]] for t in [start[o], start[o + 1]), or the
// extrapolation value for an empty range.
struct ResampleTable {
  std::vector<int64_t> start{0}, index;
  std::vector<double> weight;
};

// Throws UserError for an unknown mode name.
ResampleTable make_resample_table(const ResampleAxis& axis, const ResampleOptions& options);

// Applies a table along one axis of x, whose dimensions are `view`. `nearest`: every tap has weight
// one, and y is of x's type, which may be any. Else y is float64, or float32 of a float32 x; x is
// no float of 16 bits. `outside` is the extrapolation value.
void resample(const AxisView& view, const ResampleTable& table, const Tensor& x, Tensor& y,
              double outside, bool nearest, ThreadPool& pool);

}  // namespace redfuser::cpu
