// Orders of dimensions in which producers read or write adjacent elements.
#pragma once

#include <set>

#include "codegen/core/memory_order.h"
#include "fuse/plan.h"

namespace redfuser::codegen {

// Adds the order of each value, but for those that are excluded or have one, that rows of adjacent
// elements write along another dimension than the last, or a map of what it reads at positions that
// are data, if every step that reads the value takes elements that are adjacent there. Threads
// would write or read them apart.
void order_by_producers(const fuse::Plan& plan, const std::set<ir::ValueId>& excluded,
                        MemoryOrders& orders);

}  // namespace redfuser::codegen
