// Constant matrices whose rows are not whole vectors, while their columns are.
#pragma once

#include <set>

#include "codegen/core/memory_order.h"
#include "fuse/plan.h"

namespace redfuser::codegen {

// Adds the order by columns for the constants of 16-bit floats and two dimensions that products
// read as factors, where rows do not start on 16 bytes and columns do: kernels and the library then
// load vectors. (The library multiplies fp32 matrices faster by rows, whatever they start on.) Not
// for the `excluded` ones, nor for weights of few bits.
void order_matrices(const fuse::Plan& plan, const std::set<ir::ValueId>& excluded,
                    MemoryOrders& orders);

}  // namespace redfuser::codegen
