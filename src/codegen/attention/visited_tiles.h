// How many tiles of keys a tile of rows visits, for estimates.
#pragma once

#include "cascade/visibility/tile_ranges.h"
#include "codegen/attention/mask_condition.h"
#include "codegen/core/kernel_config.h"

namespace redfuser::codegen {

class VisitedTiles {
 public:
  // For tiles of `keys` keys; `sizes` has the form's sizes and must outlive this.
  VisitedTiles(ir::ExprPool& pool, const AttentionSpec& form, const MaskCondition& mask, int keys,
               const KnownSizes& sizes);

  // Of the rows [first_row, last_row]; all tiles where the mask depends on tensor elements. Assumes
  // the same visits for every other row index.
  int64_t of(int64_t first_row, int64_t last_row) const;

 private:
  const KnownSizes& sizes_;
  const int64_t length_;
  const cascade::TileRanges ranges_;
  const int keys_;
  bool skips_;
};

}  // namespace redfuser::codegen
