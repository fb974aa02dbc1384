// The instructions of tile programs: arithmetic, loops and reductions. Memory access is in
// tile_memory.h.
#pragma once

#include <optional>

#include "cascade/visibility/running.h"
#include "cpu/simd/byte_table.h"
#include "cpu/tile/tile_program.h"
#include "ir/expr.h"

namespace redfuser::cpu {

// The extents and operands of a kernel call for a result register.
struct Extents {
  int64_t rows, columns;
};
Extents extents_of(const TileContext& machine, const Register& r);
inline const Register& info(const TileContext& machine, RegisterId r) {
  return machine.program->registers[static_cast<size_t>(r)];
}
inline Slot& slot(TileContext& machine, RegisterId r) {
  return machine.slots[static_cast<size_t>(r)];
}
// A register as an operand of a result of shape `result`.
bool is_vector(Shape operand, Shape result);
Operand operand(const TileContext& machine, RegisterId r, Shape result);
// Kernels may run on into the padding of dense registers, which saves the tail of every row.
int64_t padded_columns(const TileContext& machine, RegisterId out, int64_t columns,
                       std::span<const RegisterId> operands);
// The address of a row of a register, for code outside of kernels.
inline char* row_address(const TileContext& machine, RegisterId r, int64_t row) {
  const Slot& s = machine.slots[static_cast<size_t>(r)];
  const Register& i = info(machine, r);
  if (i.shape != Shape::Tile) return s.data;
  const int64_t offset = s.offsets ? s.offsets[row] : row * s.stride;
  return s.data + offset * static_cast<int64_t>(size_of(i.elem));
}

// Sets a register's elements (a dense accumulator before its loop) or a scalar constant.
struct Fill final : Instruction {
  Fill(RegisterId out, double number, int64_t integer);
  void run(TileContext& machine) const override;
  double number;
  int64_t integer;
};

// The index of a row axis: ((row / inner) mod extent), by row.
struct RowIndex final : Instruction {
  RowIndex(RegisterId out, int64_t inner, int64_t extent);
  void run(TileContext& machine) const override;
  int64_t inner, extent;
};

// The index of a column axis of the result's scope, by column.
struct ColumnIndex final : Instruction {
  ColumnIndex(RegisterId out, int64_t inner, int64_t extent);
  void run(TileContext& machine) const override;
  int64_t inner, extent;
};

// The value of an outer or loop axis.
struct AxisValue final : Instruction {
  AxisValue(RegisterId out, int slot_number);
  void run(TileContext& machine) const override;
  int slot_number;
};

// How many columns of a scope's loop have been done before this tile (or after it).
struct Count final : Instruction {
  Count(RegisterId out, int scope, bool after);
  void run(TileContext& machine) const override;
  int scope;
  bool after;
};

struct Unary final : Instruction {
  Unary(UnaryFn function, RegisterId out, RegisterId a);
  void run(TileContext& machine) const override;
  UnaryFn function;
  UnaryOp op = UnaryOp::Count;  // where merge_chains may take it
  bool special = false;         // an exponential or the like
  bool rounds = false;          // to 16 bits
};

struct Binary final : Instruction {
  // `functions` by mode.
  Binary(const BinaryFn* functions, RegisterId out, RegisterId a, RegisterId b);
  void run(TileContext& machine) const override;
  const BinaryFn* functions;
  BinaryOp op = BinaryOp::Count;  // as of Unary
  bool special = false;
};

// The condition must be a vector with respect to the result.
struct Select final : Instruction {
  Select(Elem elem, RegisterId out, RegisterId condition, RegisterId a, RegisterId b);
  void run(TileContext& machine) const override;
  Elem elem;
};

// Positions counted from the end where they are negative, within bounds.
struct BoundPositions final : Instruction {
  BoundPositions(RegisterId out, RegisterId a, PositionBounds bounds);
  void run(TileContext& machine) const override;
  PositionBounds bounds;
};

// Element by element from one class to another, or a plain copy.
struct Convert final : Instruction {
  Convert(ConvertFn function, RegisterId out, RegisterId a);
  void run(TileContext& machine) const override;
  ConvertFn function;
};

// out = the element of a table at `a`, a register of 8-bit integers. Elements have 4 bytes.
struct Lookup final : Instruction {
  Lookup(RegisterId out, RegisterId a, const ByteTable& table);
  void run(TileContext& machine) const override;
  ByteTable table;
};

// Repeats the operand over the columns (and rows) that the result has and it has not.
struct Spread final : Instruction {
  Spread(RegisterId out, RegisterId a);
  void run(TileContext& machine) const override;
};

// Of a reduction that picks no element.
constexpr ReduceOp reduce_op(ir::Reduction reduction) {
  if (reduction == ir::Reduction::Sum) return ReduceOp::Sum;
  if (reduction == ir::Reduction::Prod) return ReduceOp::Prod;
  return reduction == ir::Reduction::Max ? ReduceOp::Max : ReduceOp::Min;
}

// accumulator[r] ⊕= ⊕ over the columns of a. The accumulator has shape Rows or Scalar.
struct ReduceColumns final : Instruction {
  ReduceColumns(ReduceFn function, RegisterId accumulator, RegisterId a);
  void run(TileContext& machine) const override;
  ReduceFn function;
};

// out[r, c] = ⊕ of the columns of a up to c, or from c on in reverse; `exclusive` leaves c out. All
// columns of the scope are there. With a `length`, the same along rows: a tile's rows are runs of
// so many. Floats add up and multiply in double, as one number runs through all elements, and round
// once per element.
struct RunningFold final : Instruction {
  RunningFold(const cascade::Running& running, int64_t length, RegisterId out, RegisterId a);
  void run(TileContext& machine) const override;
  ir::Reduction reduction;
  bool reverse, exclusive;
  int64_t length;  // 0: along columns
};

// Keeps the best `keep` (value, index) pairs of each row, best first; NaN is best of all, ties go
// to the lowest index. `values` and `indices` are matrices with `keep` columns. Elements are
// inserted one by one, which moves up to `keep` others, or a tile's are sorted and merged.
struct KeepBest final : Instruction {
  KeepBest(bool largest, int64_t keep, RegisterId values, RegisterId indices, RegisterId a);
  void run(TileContext& machine) const override;
  bool largest;
  int64_t keep;
  bool merges = false;
};

// out = source[row, index]; zero where the index is not below `filled` (a scalar count).
struct TakeColumn final : Instruction {
  TakeColumn(RegisterId out, RegisterId source, RegisterId index, int64_t filled);
  void run(TileContext& machine) const override;
  int64_t filled;
};

// matrix[axis value, :] = a, for building a product's operand in a loop.
struct StoreMatrixRow final : Instruction {
  StoreMatrixRow(RegisterId matrix, RegisterId a, int slot_number);
  void run(TileContext& machine) const override;
  int slot_number;
};

// Runs the body over the tiles of a scope's columns: all of them, or the part that the driver
// chose.
struct ColumnLoop final : Instruction {
  ColumnLoop(int scope, bool partial) : scope(scope), partial(partial) {}
  void run(TileContext& machine) const override;
  const Block* body() const override { return &block; }
  int scope;
  bool partial;
  Block block;
};

// Runs the body for every value of an axis.
struct AxisLoop final : Instruction {
  AxisLoop(int slot_number, int64_t extent) : slot_number(slot_number), extent(extent) {}
  void run(TileContext& machine) const override;
  const Block* body() const override { return &block; }
  int slot_number;
  int64_t extent;
  Block block;
};

// Runs the body after every `period`th step of an axis loop.
struct AtPartEnd final : Instruction {
  AtPartEnd(int slot_number, int64_t period) : slot_number(slot_number), period(period) {}
  void run(TileContext& machine) const override;
  const Block* body() const override { return &block; }
  int slot_number;
  int64_t period;
  Block block;
};

// Runs the body except in the first tile of a scope's part.
struct AfterFirst final : Instruction {
  explicit AfterFirst(int scope) : scope(scope) {}
  void run(TileContext& machine) const override;
  const Block* body() const override { return &block; }
  int scope;
  Block block;
};

}  // namespace redfuser::cpu
