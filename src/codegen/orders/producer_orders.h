// Orders of dimensions in which producers read or write adjacent elements.
#pragma once

#include <set>

#include "codegen/core/memory_order.h"
#include "fuse/plan.h"

namespace redfuser::codegen {

// Adds the order of each value, but for those that are excluded or have one, that rows of adjacent
// elements write along another dimension than the last. A map that reads at positions which are
// data orders its results by the dimension along which it reads adjacent elements. Every step that
// reads the value has to take elements that are adjacent there. In the other order, threads would
// write or read elements one by one.
void order_by_producers(const fuse::Plan& plan, const std::set<ir::ValueId>& excluded,
                        MemoryOrders& orders);

}  // namespace redfuser::codegen
