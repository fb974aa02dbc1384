// Which tiles of keys a tile of rows sees: interval analysis of a condition over indices.
//
// Over a tile [first, last] of every row axis and of the streamed axis, a comparison of integer
// expressions f >= 0 is possible where the upper bound of f is at least 0, and certain where its
// lower bound is.
#pragma once

#include <vector>

#include "cascade/visibility/key_ranges.h"

namespace redfuser::cascade {

struct TileRanges {
  std::vector<TileCorner> rows;
  TileCorner key;
  // Of the keys that some row of the tile may see, over the rows' corners.
  std::vector<KeyRange> visible;
  // Over all corners: some element of the tile may be visible; every one is.
  ir::Expr may, full;
};

// Corners of `visible` (Bool) for tiles along `rows` and `key`; every other axis is one index.
TileRanges tile_ranges(ir::ExprPool& pool, ir::Expr visible, const std::vector<ir::Expr>& rows,
                       ir::Expr key);

}  // namespace redfuser::cascade
