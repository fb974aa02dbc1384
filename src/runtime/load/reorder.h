// Tensors in another memory order.
#pragma once

#include "codegen/core/memory_order.h"
#include "redfuser/tensor.h"

namespace redfuser::runtime {

// The elements of a tensor of 16-bit numbers in this order. The dimensions stay those of the
// tensor.
Tensor reordered(const Tensor& tensor, const codegen::MemoryOrder& order);

}  // namespace redfuser::runtime
