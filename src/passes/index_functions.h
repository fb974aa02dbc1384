// Constants whose elements are functions of their indices.
#pragma once

#include <cstdint>
#include <optional>

#include "redfuser/tensor.h"

namespace redfuser::passes {

// One element everywhere, or two elements by the distance of two indices: `inside` where lowest <=
// column index - row index <= highest, as in a causal mask or a window. Elements are compared by
// their bytes.
struct Band {
  int64_t inside = 0, outside = -1;  // positions of such elements; outside -1: there is none
  size_t row = 0, column = 0;        // the dimensions
  int64_t lowest = 0, highest = 0;
};
// Of a tensor that has elements.
std::optional<Band> find_band(const Tensor& tensor);

// first + step · index of one dimension, in integers, as positions are; `tensor` may hold them as
// floats. Null where a float cannot hold one exactly, or all elements are equal.
struct Progression {
  int64_t first = 0, step = 0;
  size_t dim = 0;
};
std::optional<Progression> find_progression(const Tensor& tensor);

}  // namespace redfuser::passes
