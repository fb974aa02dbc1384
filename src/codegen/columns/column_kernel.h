// Kernels of rows that lie beside each other in memory (src/device/columns.cuh).
#pragma once

#include "codegen/columns/column_form.h"
#include "codegen/rows/single_pass.h"

namespace redfuser::codegen {

struct ColumnConfig {
  using Part = SinglePassConfig::Part;
  Part part = Part::Row;
  // Threads of a block side by side: a power of two up to 32, or as many as have all columns; and
  // along the streamed axis: a power of two, up to 32 beside such a number.
  int across = 8, along = 32;
  int width = 4;       // adjacent rows of a thread
  int chunks = 4;      // streamed elements of a thread in a tile
  bool whole = false;  // one tile has the row: it is read once
  int segments = 1;    // at most, that blocks take of a row
  int cluster = 1;     // blocks that share rows, each of which has a tile

  bool by_warps() const { return across <= 32 && (across & (across - 1)) == 0; }
  // The last warp may have idle lanes.
  int threads() const { return (across * along + 31) / 32 * 32; }
  // States of a row that meet in shared memory.
  int shares() const { return by_warps() ? threads() / 32 : along; }
  int rows() const { return across * width; }
  int tile() const { return along * chunks; }
  int64_t capacity() const { return int64_t{1} * tile() * cluster; }
  Parameters parameters() const {
    return {{"across", across},  {"along", along},         {"width", width},
            {"chunks", chunks},  {"whole", whole ? 1 : 0}, {"segments", segments},
            {"cluster", cluster}};
  }
};

// Static shared memory of a block.
int column_static_bytes(const ColumnConfig& config, int64_t state_bytes);
// Streamed elements of a segment, how many segments a row has, tiles of adjacent rows.
ir::Expr column_segment(ir::ExprPool& pool, const FlatStreaming& form, const ColumnConfig& config);
ir::Expr column_segments(ir::ExprPool& pool, const FlatStreaming& form, const ColumnConfig& config);
ir::Expr column_groups(ir::ExprPool& pool, const ColumnForm& form, const ColumnConfig& config);

// `states` is the scratch buffer of the segments' states.
KernelLaunch column_kernel(StepBuilder& builder, const ColumnForm& form, const ColumnConfig& config,
                           int64_t states = -1);

}  // namespace redfuser::codegen
