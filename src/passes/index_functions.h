// Constants whose elements are functions of their indices.
#pragma once

#include <cstdint>
#include <optional>

#include "redfuser/tensor.h"

namespace redfuser::passes {

// One element everywhere, or two elements by the distance of two indices, as in a causal mask or a
// window: `inside` where lowest <= column index - row index <= highest, else `outside`. Elements
// are compared by their bytes.
struct Band {
  int64_t inside = 0, outside = -1;  // positions of such elements; -1: there is none outside
  size_t row = 0, column = 0;        // the dimensions
  int64_t lowest = 0, highest = 0;
};
// The tensor must not be empty.
std::optional<Band> find_band(const Tensor& tensor);

// first + step · index along one dimension, in integers (positions); `tensor` may store them as
// floats. nullopt if a float is not exact, or if all elements are equal.
struct Progression {
  int64_t first = 0, step = 0;
  size_t dim = 0;
};
std::optional<Progression> find_progression(const Tensor& tensor);

}  // namespace redfuser::passes
