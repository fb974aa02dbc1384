// Blocks of tensors: the elements at indices that two tensors have in common.
#pragma once

#include "redfuser/tensor.h"

namespace redfuser {

// Copies every element of `from` whose indices `to` has, to the same indices. Both are of one type
// and rank.
void copy_common(const Tensor& from, Tensor& to);

// The tensor in memory of other sizes, of which those that are greater end with zeros.
Tensor resized(const Tensor& tensor, const Dims& dims);

}  // namespace redfuser
