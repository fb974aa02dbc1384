// A general reduction for fixed sizes: out[indices] = body, where body holds Reduce nodes.
#pragma once

#include <span>
#include <vector>

#include "cpu/steps/step_kernel.h"
#include "cpu/tile/tile_builder.h"

namespace redfuser::cpu {

struct ReducePlan {
  ir::ExprPool pool;
  TileProgram program;
  int64_t rows = 1, columns = 1, row_tile = 1, column_tile = 1;
  int scope = kNoScope;
  bool running = false;  // the columns are the axis of a running reduction, all in one tile

  // `indices` (axes of `pool`, or the constant 0) and `body` are specialized for `symbols`.
  void build(const ir::Graph& graph, std::span<const int64_t> symbols, ir::ValueId value,
             std::vector<ir::Expr> indices, ir::Expr body);
  // Allocates and computes the output.
  void run(RunContext& context, ir::ValueId value) const;
};

}  // namespace redfuser::cpu
