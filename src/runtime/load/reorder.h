// Tensors of 16-bit and 32-bit numbers in other memory orders. The dimensions stay those of the
// tensor, but for padded matrices, which have those of the memory.
#pragma once

#include "codegen/core/memory_order.h"
#include "redfuser/tensor.h"

namespace redfuser::runtime {

// The elements of a row-major tensor in this order.
Tensor reordered(const Tensor& tensor, const codegen::MemoryOrder& order);

// The elements, which are in this order and not padded, row-major.
Tensor restored(const Tensor& tensor, const codegen::MemoryOrder& order);

}  // namespace redfuser::runtime
