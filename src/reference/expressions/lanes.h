// Values of an expression at several points at once, and conversions to and from tensors.
//
// Floats of 16 bits and more are doubles. Other types are 64-bit words: narrower integers are
// sign-extended or zero-extended, uint64 is its bits, a bool 0 or 1, a float of at most 8 bits its
// code, a string its number.
#pragma once

#include <Eigen/Core>
#include <cstdint>

#include "redfuser/tensor.h"

namespace redfuser::reference {

using Numbers = Eigen::ArrayXd;
using Words = Eigen::Array<int64_t, Eigen::Dynamic, 1>;

// One of the two arrays is in use, by the dtype of the expression. An array of one element has the
// same value at every point.
struct Lanes {
  Numbers numbers;
  Words words;

  static Lanes of(double number) { return {Numbers::Constant(1, number), {}}; }
  static Lanes of(int64_t word) { return {{}, Words::Constant(1, word)}; }
};

// The elements of a tensor at these positions, floats converted exactly.
Lanes elements_at(const Tensor& tensor, const Words& positions);
Lanes all_elements(const Tensor& tensor);
// Writes `count` elements of a tensor from `first` on. Floats are rounded to nearest even.
void store(const Lanes& lanes, Tensor& tensor, int64_t first, int64_t count);

// A tensor of these elements, all of them.
Tensor filled(const Lanes& lanes, DType dtype, Dims dims);

// The type of values of `dtype` in the reference: Float64 for floats, else itself.
DType held_type(DType dtype);
// A tensor with floats converted to Float64, or from Float64 rounded to `dtype`. Other tensors are
// returned as they are.
Tensor widened(const Tensor& tensor);
Tensor rounded(const Tensor& tensor, DType dtype);

}  // namespace redfuser::reference
