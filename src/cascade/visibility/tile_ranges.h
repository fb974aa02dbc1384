// Which tiles of keys a tile of rows sees: interval analysis of a condition over indices.
//
// Over a tile [first, last] of every row axis and of the streamed axis, a comparison of integer
// expressions f >= 0 is possible where the upper bound of f is at least 0, and certain where its
// lower bound is. Bounds are taken monomial by monomial in f's polynomial, so that what two sides
// share cancels; floor divisions are monotone. Where an atom of f is the key alone (or a floor
// division of it), f >= 0 is solved for the key, which gives the range of keys to visit.
#pragma once

#include <vector>

#include "ir/expr.h"

namespace redfuser::cascade {

// The first and the last index of an axis within a tile, both included, as axes of its extent.
struct TileCorner {
  ir::Expr axis, first, last;
};

struct TileRanges {
  std::vector<TileCorner> rows;
  TileCorner key;
  // Keys outside [begin, end) are hidden from every row of the tile. Over the rows' corners, within
  // [0, extent]; empty if begin >= end.
  ir::Expr begin, end;
  // Over all corners: some element of the tile may be visible; every one is.
  ir::Expr may, full;
};

// Corners of `visible` (Bool) for tiles along `rows` and `key`; every other axis is one index.
TileRanges tile_ranges(ir::ExprPool& pool, ir::Expr visible, const std::vector<ir::Expr>& rows,
                       ir::Expr key);

}  // namespace redfuser::cascade
