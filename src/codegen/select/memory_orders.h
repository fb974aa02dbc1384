// Which values of a plan are in memory with their channels last.
#pragma once

#include <set>

#include "codegen/core/memory_order.h"
#include "fuse/plan.h"

namespace redfuser::codegen {

// The inputs and results of convolutions of 16-bit floats, the values that elementwise steps and
// pools make of them or add to them, and constant weights: the tensor cores then read rows of
// channels. Values of the caller, values under two shapes and those that `on_host` steps (by
// number) touch stay row-major, as do those of which a step reduces channels together with other
// dimensions.
MemoryOrders memory_orders(const fuse::Plan& plan, const std::set<size_t>& on_host);

}  // namespace redfuser::codegen
