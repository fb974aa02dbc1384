// Where elements of values are in memory, for values that are not row-major or have room for more.
#pragma once

#include <map>
#include <vector>

#include "fuse/growing/appends.h"
#include "ir/graph.h"

namespace redfuser::codegen {

// The dimensions of a value in memory, outermost first: 0, 2, 3, 1 are images with their channels
// last.
using MemoryOrder = std::vector<int>;

// Of the values that are not row-major.
using MemoryOrders = std::map<ir::ValueId, MemoryOrder>;

// By the value that is written: what a run appends to memory with room.
using Appends = std::map<ir::ValueId, fuse::Append>;

// The row-major offset of a point among dimensions.
ir::Expr row_major(ir::ExprPool& pool, const std::vector<ir::Expr>& point,
                   const std::vector<ir::Expr>& dims);

// Things that a value has for each dimension, in the order of memory. `order`: null for row-major.
std::vector<ir::Expr> in_memory(const std::vector<ir::Expr>& of_dimensions,
                                const MemoryOrder* order);

}  // namespace redfuser::codegen
