// The keys that a tile of rows visits: those outside leave every row's state as it is.
#pragma once

#include <string>

#include "cascade/visibility/tile_ranges.h"
#include "codegen/attention/mask_condition.h"

namespace redfuser::codegen {

class VisibleKeys {
 public:
  VisibleKeys(ir::ExprPool& pool, const AttentionSpec& form);

  // Declares `begin`, a multiple of `unit`, and `end`: the keys visible to the `lines` rows from
  // `first_row` on. The other rows' coordinates are bound.
  void declare(Emitter& emitter, const std::string& first_row, int lines, int unit) const;

 private:
  const AttentionSpec& form_;
  const MaskCondition mask_;
  const cascade::TileRanges ranges_;
};

}  // namespace redfuser::codegen
