// Blocks of tensors: the elements at indices that two tensors have in common.
#pragma once

#include "redfuser/tensor.h"

namespace redfuser {

// Copies every element of `from` whose indices `to` has, to the same indices. Both are of one type
// and rank.
void copy_common(const Tensor& from, Tensor& to);

// The tensor in memory of other sizes, of which those that are greater end with zeros.
Tensor resized(const Tensor& tensor, const Dims& dims);

// The part of the tensor at indices below `dims`, each at most the tensor's size. It shares the
// tensor's bytes where these are contiguous.
Tensor part_below(const Tensor& tensor, const Dims& dims);

// Whether the elements of a tensor of `dims` are the first ones in memory of sizes `room`.
bool leads(const Dims& dims, const Dims& room);

}  // namespace redfuser
