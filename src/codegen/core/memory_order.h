// Where elements of values are in memory, for values that are not row-major or have room for more.
#pragma once

#include <compare>
#include <map>
#include <vector>

#include "fuse/growing/appends.h"
#include "ir/graph.h"

namespace redfuser::codegen {

// The dimensions of a value in memory, outermost first: 0, 2, 3, 1 are images with their channels
// last.
struct MemoryOrder : std::vector<int> {
  using std::vector<int>::vector;
  // Every dimension is padded with zeros to whole vectors of 16 bytes.
  bool padded = false;

  friend auto operator<=>(const MemoryOrder&, const MemoryOrder&) = default;
};

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

// The least number of elements from `size` on that fills vectors of 16 bytes.
int64_t size_in_vectors(int64_t size, DType dtype);
// The sizes of a value's dimensions in memory, in its order. Padded ones are constants.
std::vector<ir::Expr> memory_shape(ir::ExprPool& pool, const std::vector<ir::Expr>& shape,
                                   DType dtype, const MemoryOrder* order);

}  // namespace redfuser::codegen
