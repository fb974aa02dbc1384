// Bounds of integer expressions over a tile [first, last] of each of some axes, as expressions.
//
// Bounds are taken monomial by monomial in the expression's polynomial, so that equal terms on both
// sides of a comparison cancel; those of its atoms follow the rules of ir/interval.h.
#pragma once

#include <optional>
#include <vector>

#include "ir/interval.h"
#include "ir/polynomial.h"

namespace redfuser::cascade {

// The first and the last index of an axis within a tile, both included, as axes of its extent.
struct TileCorner {
  ir::Expr axis, first, last;
};

using Bounds = ir::Interval<ir::Expr>;

class IndexBounds {
 public:
  // Axes without a corner have one index.
  IndexBounds(ir::ExprPool& pool, std::vector<TileCorner> corners)
      : pool_(pool), corners_(std::move(corners)) {}

  bool varies(ir::Expr e) const;
  // Over the corners; nullopt if none are known.
  std::optional<Bounds> of(ir::Expr e) const;

 private:
  std::optional<Bounds> of_monomial(const ir::Monomial& monomial) const;
  std::optional<Bounds> of_atom(ir::Expr atom) const;

  ir::ExprPool& pool_;
  std::vector<TileCorner> corners_;
};

}  // namespace redfuser::cascade
