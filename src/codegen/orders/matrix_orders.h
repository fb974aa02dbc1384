// Constant matrices whose rows or columns are not whole vectors.
#pragma once

#include <set>

#include "codegen/core/memory_order.h"
#include "fuse/plan.h"

namespace redfuser::codegen {

// Adds the orders of the constants of 16-bit floats and two dimensions that products read as
// factors, so that kernels and the library load vectors: by columns where rows do not start on 16
// bytes and columns do, and padded where either does not. (The library multiplies fp32 matrices
// faster by rows, whatever they start on.) Not for the `excluded` ones, nor for weights of few
// bits.
void order_matrices(const fuse::Plan& plan, const std::set<ir::ValueId>& excluded,
                    MemoryOrders& orders);

}  // namespace redfuser::codegen
