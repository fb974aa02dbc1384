// The keys that a condition leaves to a tile of rows, as a union of ranges.
//
// f >= 0 is solved for the key where it occurs in one atom of f, alone or in a floor division, by
// bounds of the rest over the rows of the tile. A condition on rows alone leaves all keys or none.
#pragma once

#include <vector>

#include "cascade/visibility/index_bounds.h"
#include "cascade/visibility/index_condition.h"

namespace redfuser::cascade {

struct KeyRange {
  ir::Expr begin, end;
};
inline constexpr size_t kMaxKeyRanges = 4;

// One to kMaxKeyRanges ranges within [0, extent of key], in any order, that may overlap or be
// empty. Keys outside of all of them are hidden from every row. `bounds`: of the rows and the key.
std::vector<KeyRange> key_ranges(ir::ExprPool& pool, const IndexCondition& condition,
                                 const IndexBounds& bounds, ir::Expr key);

}  // namespace redfuser::cascade
