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
};

// How the axes are split: `joined` more axes than the default has are columns, and all rows but the
// innermost axis are outer.
struct SplitForm {
  int joined = 0;
  bool outer = false;
};

inline constexpr int kMostJoined = 3;

// The elements of a pointwise program, and the positions in memory that it writes them to.
struct MapElements {
  std::span<const ir::Expr> bodies, writes;
};

// By default the innermost axis, merged with outer axes that are contiguous with it in every read
// and write, so that rows are long.
AxisSplit choose_columns(ir::ExprPool& pool, const std::vector<ir::Expr>& axes,
                         const MapElements& elements, const TileBuilder::DimsOf& dims,
                         SplitForm form = {});

// The forms besides the default that may take less time: longer rows, and parts of the bodies that
// are not computed for every row.
std::vector<SplitForm> other_splits(ir::ExprPool& pool, const std::vector<ir::Expr>& axes,
                                    const MapElements& elements, const TileBuilder::DimsOf& dims);

// Whether a position is a sum of multiples of axes.
bool is_affine(ir::Expr position);

// The coefficient of each axis in an offset; `known[i]` is false where the offset is not affine in
// axis i.
struct AxisStrides {
  std::vector<int64_t> strides;
  std::vector<bool> known;
};
AxisStrides strides_of(ir::Expr offset, const std::vector<ir::Expr>& axes);

}  // namespace redfuser::cpu
