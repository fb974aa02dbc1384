// Which axes of a pointwise program are its columns.
#pragma once

#include <span>
#include <vector>

#include "cpu/tile/tile_builder.h"

namespace redfuser::cpu {

struct AxisSplit {
  std::vector<Expr> rows, columns;
  bool strided = false;  // some read steps over memory along the columns
};

// The innermost axis, joined with as many of its neighbours as lie side by side with it in every
// read, so that rows are long.
AxisSplit choose_columns(ExprPool& pool, const std::vector<Expr>& axes,
                         std::span<const Expr> bodies, const TileBuilder::DimsOf& dims);

// The coefficient of each axis in a read's row-major offset; `known[i]` is false where the offset
// is not affine in axis i.
struct ReadStrides {
  std::vector<int64_t> strides;
  std::vector<bool> known;
};
ReadStrides strides_of(ExprPool& pool, Expr read, const std::vector<Expr>& axes,
                       const TileBuilder::DimsOf& dims);

}  // namespace redfuser::cpu
