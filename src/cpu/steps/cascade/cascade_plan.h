// A streaming form for fixed sizes, as one tile program: a task folds the streamed axis for a block
// of rows, tile by tile, finishes and writes its outputs.
#pragma once

#include <optional>
#include <vector>

#include "cpu/estimate/program_time.h"
#include "cpu/steps/cascade/cascade_trim.h"
#include "cpu/steps/growing_extents.h"
#include "cpu/steps/step_form.h"
#include "cpu/tile/tile_builder.h"

namespace redfuser::cpu {

// How the streamed axis is visited: tile by tile; all of it as one tile; or the same, but where
// outputs have it as an axis, in the parts that their indices have of it (groups of channels).
enum class CascadeRows { Streamed, Whole, WholeByParts };

class CascadePlan final : public TilePlan {
 public:
  CascadePlan(const StepForm& form, const cascade::Streaming& streaming, CascadeRows kind);

  // Rows of a task, and elements of the streamed axis at a time (ignored if resident). Before the
  // first run.
  void set_tiles(int64_t rows, int64_t columns);
  // With these tiles.
  StepTime time(int threads) const;
  void run(RunContext& context) const override;
  bool is_exact() const override { return exact_; }

  int64_t outer() const { return outer_; }
  int64_t rows() const { return rows_; }
  // Nothing to write.
  bool empty() const { return outer_ == 0 || rows_ == 0; }

 private:
  void set_outer(TileContext& machine, int64_t point) const;
  void set_part(TileContext& machine, int64_t row, int64_t count) const;
  void set_part(TileContext& machine, TileContext::Range part) const;
  // The part of the streamed axis that a run visits if it trims.
  double visited() const;

  // Outer axes are fixed within a task; their points are numbered in row-major order.
  std::vector<ir::Expr> outer_axes_, row_axes_;
  int64_t outer_ = 1, rows_ = 1;
  int scope_ = kNoScope;  // of the streamed axis
  bool resident_;
  CascadeTrim trim_;    // of growing sizes nothing is trimmed
  double visited_ = 1;  // with these tiles
  double checked_ = 0;  // elements that must be finite where a run trims
  std::vector<ir::ValueId> outputs_;
  std::vector<Dims> memory_;  // of the outputs
  std::optional<GrowingExtents> growing_;
  bool exact_ = true;
};

}  // namespace redfuser::cpu
