// The choice of a pointwise program's columns.
#pragma once

#include <span>
#include <vector>

#include "cpu/tile/tile_builder.h"

namespace redfuser::cpu {

struct AxisSplit {
  std::vector<ir::Expr> rows, columns;
  bool strided = false;  // some read steps over memory along the columns
};

// The innermost axis, merged with outer axes that are contiguous with it in every read, so that
// rows are long.
AxisSplit choose_columns(ir::ExprPool& pool, const std::vector<ir::Expr>& axes,
                         std::span<const ir::Expr> bodies, const TileBuilder::DimsOf& dims);

// The coefficient of each axis in a read's row-major offset; `known[i]` is false where the offset
// is not affine in axis i.
struct ReadStrides {
  std::vector<int64_t> strides;
  std::vector<bool> known;
};
ReadStrides strides_of(ir::ExprPool& pool, ir::Expr read, const std::vector<ir::Expr>& axes,
                       const TileBuilder::DimsOf& dims);

}  // namespace redfuser::cpu
