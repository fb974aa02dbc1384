// A tile program: a linear list of vector instructions over two-dimensional registers, the CPU's
// form of a set of expressions.
//
// A program works on one task at a time: fixed values of its outer axes and a range of rows (one or
// several axes, flattened). The columns of a register belong to a scope: the streamed axis, the
// innermost output axes, the axis of a reduction. A register holds no more than its value varies:
// a function of the column alone is one row, however many rows the tile has.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cpu/simd/kernel_table.h"
#include "ir/expr.h"
#include "redfuser/tensor.h"

namespace redfuser::cpu {

// The dimensions that a register varies over; a set of bits.
enum class Shape : uint8_t { Scalar = 0, Rows = 1, Columns = 2, Tile = 3 };
inline Shape operator|(Shape a, Shape b) {
  return static_cast<Shape>(static_cast<int>(a) | static_cast<int>(b));
}
inline bool has_rows(Shape s) { return static_cast<int>(s) & 1; }
inline bool has_columns(Shape s) { return static_cast<int>(s) & 2; }

using RegisterId = int;
inline constexpr RegisterId kNoRegister = -1;
inline constexpr int kNoScope = -1;

Elem elem_of(DType dtype);
size_t size_of(Elem elem);
// True if memory of `dtype` holds elements just as registers of its class do.
bool same_storage(DType dtype);

struct Register {
  Elem elem = Elem::F32;
  Shape shape = Shape::Scalar;
  int scope = kNoScope;     // of its columns
  int depth = 0;            // of the block that computes it
  int64_t matrix_rows = 0;  // positive: a matrix with this many rows instead of the tile's
  // Dense registers own scratch memory, in rows padded to 16 elements; others are views that an
  // instruction binds.
  bool dense = true;
  RegisterId alias = kNoRegister;    // shares the memory of this dense register
  RegisterId offsets = kNoRegister;  // a view's row offsets live in this register
  // Of a view of elements of another type, which a chain converts; else undefined.
  DType storage = DType::Undefined;
  int64_t stride = 0;    // elements between rows, set by layout
  int64_t position = 0;  // byte offset in scratch, set by layout
};

// Bytes of an element of its memory.
int64_t element_bytes(const Register& r);

// The columns of a loop, of a reduction or of the whole program.
struct Scope {
  std::vector<ir::Expr> axes;  // flattened, outermost first
  int64_t extent = 1;
  int64_t tile = 1;  // the most columns of a register; the extent itself unless a loop runs
};

struct Slot {
  char* data = nullptr;
  int64_t stride = 0;
  const int64_t* offsets = nullptr;
};

class TileProgram;

// The state of one worker running one program.
struct TileContext {
  const TileProgram* program = nullptr;
  std::vector<Slot> slots;    // by register
  std::vector<int64_t> axes;  // values of outer and loop axes
  struct Range {
    int64_t begin = 0, count = 0;
  };
  std::vector<Range> columns;  // by scope
  std::vector<Range> parts;    // by scope: the columns that a partial loop visits
  Range rows;
  std::span<const char* const> tensors;  // by tensor number of the program
  std::span<char* const> outputs;        // by output number
  char* scratch = nullptr;               // of this worker
  void* gemm_scratch = nullptr;
};

// One step of a program. Registers are listed for the layout: reads before writes.
struct Instruction {
  virtual ~Instruction() = default;
  virtual void run(TileContext& machine) const = 0;
  virtual const std::vector<std::unique_ptr<Instruction>>* body() const { return nullptr; }
  std::vector<RegisterId> reads, writes;
  bool elementwise = false;  // may write over an operand of the same shape
  bool bindable = false;     // may write its result to an output's memory
};
using Block = std::vector<std::unique_ptr<Instruction>>;

class TileProgram {
 public:
  std::vector<Register> registers;
  std::vector<Scope> scopes;
  int axis_slots = 0;
  std::vector<int64_t> tensors;  // value numbers that loads read
  std::vector<DType> outputs;    // by output number
  Block block;
  int64_t row_tile = 1;  // the most rows of a task

  // Assigns scratch memory by liveness. Call once, when row_tile and every scope's tile are set.
  void layout();
  int64_t scratch_bytes() const { return scratch_bytes_; }
  // The bytes of one row and one column in all registers that are alive at once, for choosing
  // tiles before the layout: an upper bound by the number of tile registers.
  int tile_registers(int scope) const;

  // Readies a machine. `scratch` has scratch_bytes() bytes, aligned to 64.
  void prepare(TileContext& machine, std::span<const char* const> tensor_data,
               std::span<char* const> output_data, char* scratch, void* gemm_scratch) const;
  // Runs one task; the caller has set the outer axes and, for an outermost scope, its columns.
  void run(TileContext& machine, int64_t row_begin, int64_t row_count) const;

 private:
  int64_t bytes_of(const Register& r) const;
  int64_t scratch_bytes_ = 0;
};

inline int64_t padded(int64_t n) { return (n + 15) / 16 * 16; }

}  // namespace redfuser::cpu
