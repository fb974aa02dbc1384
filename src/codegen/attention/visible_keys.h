// The keys that a tile of rows visits. Keys outside change no row's state.
#pragma once

#include <string>

#include "cascade/visibility/tile_ranges.h"
#include "codegen/attention/mask_condition.h"

namespace redfuser::codegen {

class VisibleKeys {
 public:
  VisibleKeys(ir::ExprPool& pool, const AttentionSpec& form, const MaskCondition& mask);

  // The tiles of `unit` keys that the rows [first_row, last_row] visit, as the text of a value of
  // device/key_tiles.cuh, a TileRange or a KeyTiles. The other rows' coordinates must be bound.
  std::string tiles(Emitter& emitter, const std::string& first_row, const std::string& last_row,
                    int unit) const;

  const cascade::TileRanges& ranges() const { return ranges_; }

 private:
  // Declares begin and tiles, or `visited`.
  void declare(Emitter& emitter, const std::string& first_row, const std::string& last_row,
               int unit) const;

  const AttentionSpec& form_;
  const bool skips_;
  const cascade::TileRanges ranges_;
};

}  // namespace redfuser::codegen
