// Matrices side by side, as one that is put together where it is wanted.
#pragma once

#include <vector>

#include "redfuser/tensor.h"

namespace redfuser::passes {

struct MatrixPart {
  Tensor matrix;
  bool transposed = false;  // the part is the matrix' transpose
  int64_t columns = 0;      // of the part
};

// The matrix of `rows` rows whose columns are those of all parts, which have as many rows and one
// dtype. It holds on to the parts instead of copies of them.
Tensor column_concat(int64_t rows, std::vector<MatrixPart> parts);

}  // namespace redfuser::passes
