// Which values of a plan are in memory in another order than row-major.
#pragma once

#include <set>

#include "codegen/core/gpu_step.h"
#include "fuse/plan.h"

namespace redfuser::codegen {

// The inputs and results of convolutions of 16-bit floats and of fp32, the values that elementwise
// steps and pools make of them or add to them, and constant weights: the tensor cores then read
// rows of channels. Values of the caller, values under two shapes and those that `on_host` steps
// (by number) touch stay row-major, as do those of which a step reduces channels together with
// other dimensions. Beside them, constant matrices by columns (order_matrices).
MemoryOrders memory_orders(const fuse::Plan& plan, const std::set<size_t>& on_host);

// Sets the target's orders, and of the plan's appends those that no step on the host touches.
void place_values(Target& target, const fuse::Plan& plan, const std::vector<fuse::Append>& appends,
                  const std::set<size_t>& on_host);

}  // namespace redfuser::codegen
