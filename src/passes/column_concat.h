// Matrices concatenated along their columns when the result is first used.
#pragma once

#include <vector>

#include "redfuser/tensor.h"

namespace redfuser::passes {

struct MatrixPart {
  Tensor matrix;
  bool transposed = false;  // the part is the matrix' transpose
  int64_t columns = 0;      // of the part
};

// The matrix of `rows` rows with the columns of all parts, which have `rows` rows and one dtype. It
// keeps references to the parts, not copies.
Tensor column_concat(int64_t rows, std::vector<MatrixPart> parts);

}  // namespace redfuser::passes
