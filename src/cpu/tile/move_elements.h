// Where the elements of a tile's access are, and copies of those that do not lie side by side.
#pragma once

#include "cpu/tile/tile_memory.h"

namespace redfuser::cpu {

// The elements of a register of offsets; null for none.
const int64_t* table(const TileContext& machine, RegisterId r);
// The offset of the tile's first element, with the beginnings of its rows and columns.
int64_t origin(const TileContext& machine, const Access& access, Shape shape, int scope);

// An access as rows of elements: a vector along rows counts as one row.
struct Walk {
  int64_t rows = 1, columns = 1;
  int64_t origin = 0, row_stride = 0, column_stride = 0;
  const int64_t *row_offsets = nullptr, *column_offsets = nullptr;
  const Operand* whole = nullptr;  // a part element by element, times whole_scale
  int64_t whole_scale = 1;
  int64_t row(int64_t r) const { return origin + (row_offsets ? row_offsets[r] : r * row_stride); }
  int64_t column(int64_t c) const { return column_offsets ? column_offsets[c] : c * column_stride; }
};
Walk walk_of(const TileContext& machine, const Access& access, Shape shape, int scope);

// The tensor that elements are copied from, and where in it a tile is.
struct MoveSource {
  const char* from;
  const Access& access;
  const Walk& walk;
  size_t bytes;  // of an element
};

// A part of a tile's rows and columns, and memory of it with `stride` elements between rows.
struct TilePart {
  int64_t row, rows, column, columns;
  char* data;
  int64_t stride;
};

// Copies a part of a tile from the tensor; of an access that is not in range, an element outside of
// the tensor is the one at its end. Requires a tensor with elements.
void move_elements(const MoveSource& source, const TilePart& part);
// Copies a part of a tile to an output, of elements of so many bytes.
void scatter_elements(size_t bytes, char* output, const Walk& walk, const TilePart& part);

}  // namespace redfuser::cpu
