// Numbers of an expression at several points at once, and tensors as such numbers.
//
// Floats of every width are doubles. Everything else is a 64-bit word: an integer of fewer bits is
// extended by its sign or by zeros, uint64 is its bits, a bool 0 or 1, a float of 8 bits and fewer
// its code, a text its number.
#pragma once

#include <Eigen/Core>
#include <cstdint>

#include "redfuser/tensor.h"

namespace redfuser::reference {

using Numbers = Eigen::ArrayXd;
using Words = Eigen::Array<int64_t, Eigen::Dynamic, 1>;

// One of the two arrays is in use, as the dtype of the expression says. One element stands for the
// same number at every point.
struct Lanes {
  Numbers numbers;
  Words words;

  static Lanes of(double number) { return {Numbers::Constant(1, number), {}}; }
  static Lanes of(int64_t word) { return {{}, Words::Constant(1, word)}; }
};

// The elements of a tensor at these positions. Floats of 16 and 32 bits are read as what they are.
Lanes elements_at(const Tensor& tensor, const Words& positions);
Lanes all_elements(const Tensor& tensor);
// Writes `count` elements of a tensor from `first` on. Floats are rounded to nearest even.
void store(const Lanes& lanes, Tensor& tensor, int64_t first, int64_t count);

// A tensor of these elements, all of them.
Tensor filled(const Lanes& lanes, DType dtype, Dims dims);

// The type that holds values of `dtype`: Float64 for floats, else itself.
DType held_type(DType dtype);
// A tensor with its floats in Float64, or with those of Float64 rounded to `dtype`. Others stay.
Tensor widened(const Tensor& tensor);
Tensor rounded(const Tensor& tensor, DType dtype);

}  // namespace redfuser::reference
