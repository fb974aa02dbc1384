// Blocks of tensors: the elements at indices that two tensors have in common.
#pragma once

#include "redfuser/tensor.h"

namespace redfuser {

// Copies every element of `from` whose indices `to` has, to the same indices. Both are of one type
// and rank.
void copy_common(const Tensor& from, Tensor& to);

// The tensor in memory of other sizes, of which those that are greater end with zeros.
Tensor resized(const Tensor& tensor, const Dims& dims);

// The elements of the tensor at the indices below `dims`, which are no greater than its sizes; the
// tensor's own bytes where they lie one after another there.
Tensor part_below(const Tensor& tensor, const Dims& dims);

// Whether the elements of a tensor of `dims` are the first ones in memory of sizes `room`.
bool leads(const Dims& dims, const Dims& room);

}  // namespace redfuser
