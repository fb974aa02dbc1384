// A streaming form for fixed sizes, as one tile program: a task folds the streamed axis for a block
// of rows, tile by tile, finishes and writes its outputs.
#pragma once

#include <span>
#include <vector>

#include "cpu/steps/cascade_trim.h"
#include "cpu/steps/step_kernel.h"
#include "cpu/tile/tile_builder.h"

namespace redfuser::cpu {

struct CascadePlan {
  ir::ExprPool pool;
  TileProgram program;
  // Outer axes are fixed within a task; their points are numbered in row-major order.
  std::vector<ir::Expr> outer_axes, row_axes;
  int64_t outer = 1, rows = 1;
  bool empty = false;     // nothing to write
  int scope = kNoScope;   // of the streamed axis
  bool resident = false;  // the whole streamed axis is one tile
  CascadeTrim trim;

  void build(const ir::Graph& graph, std::span<const int64_t> symbols,
             const cascade::Streaming& streaming, int threads);
  void run(RunContext& context, std::span<const ir::ValueId> outputs) const;

 private:
  void set_outer(TileContext& machine, int64_t point) const;
  void set_part(TileContext& machine, int64_t row, int64_t count) const;
};

}  // namespace redfuser::cpu
