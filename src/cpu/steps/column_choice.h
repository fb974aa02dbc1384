// The choice of a pointwise program's columns.
#pragma once

#include <span>
#include <vector>

#include "cpu/tile/tile_builder.h"

namespace redfuser::cpu {

struct AxisSplit {
  // Of the outer axes every value has tiles of its own: what depends on them and on columns alone
  // is computed once for the rows of a tile.
  std::vector<ir::Expr> outer, rows, columns;
  bool strided = false;  // some read steps over memory along the columns
};

// How the axes are split: `joined` more axes than the default has are columns, and all rows but the
// innermost axis are outer.
struct SplitForm {
  int joined = 0;
  bool outer = false;
};

inline constexpr int kMostJoined = 3;

// By default the innermost axis, merged with outer axes that are contiguous with it in every read,
// so that rows are long.
AxisSplit choose_columns(ir::ExprPool& pool, const std::vector<ir::Expr>& axes,
                         std::span<const ir::Expr> bodies, const TileBuilder::DimsOf& dims,
                         SplitForm form = {});

// The forms besides the default that may take less time: longer rows, and parts of the bodies that
// are not computed for every row.
std::vector<SplitForm> other_splits(ir::ExprPool& pool, const std::vector<ir::Expr>& axes,
                                    std::span<const ir::Expr> bodies,
                                    const TileBuilder::DimsOf& dims);

// Whether a position is a sum of multiples of axes.
bool is_affine(ir::Expr position);

// The coefficient of each axis in a read's row-major offset; `known[i]` is false where the offset
// is not affine in axis i.
struct ReadStrides {
  std::vector<int64_t> strides;
  std::vector<bool> known;
};
ReadStrides strides_of(ir::ExprPool& pool, ir::Expr read, const std::vector<ir::Expr>& axes,
                       const TileBuilder::DimsOf& dims);

}  // namespace redfuser::cpu
