// Tensors of numbers drawn from a generator.
#pragma once

#include <random>
#include <utility>

#include "redfuser/redfuser.h"
#include "support/ranked_rows.h"

namespace redfuser::testing {

// Evenly drawn numbers between -scale and scale.
inline Tensor drawn_tensor(std::mt19937& random, DType dtype, Dims dims, double scale) {
  Tensor result(dtype, std::move(dims));
  for (int64_t i = 0; i < result.size(); ++i) {
    set_element(result, i, scale * (static_cast<double>(random() % 2001) / 1000 - 1));
  }
  return result;
}

}  // namespace redfuser::testing
