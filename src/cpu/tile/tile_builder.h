// Compiles specialized expressions into a tile program.
//
// Values are placed in the outermost block that has their operands, and equal instructions are
// emitted once per block (value numbering), so that loop invariants are computed before the loop
// and common parts of outputs once.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "cascade/visibility/running.h"
#include "cpu/tile/tile_memory.h"
#include "cpu/tile/tile_program.h"
#include "ir/expr.h"
#include "ir/polynomial.h"

namespace redfuser::cpu {

class TileBuilder {
 public:
  // `dims(value)` are the sizes of a value that expressions read.
  using DimsOf = std::function<Dims(int64_t value)>;
  TileBuilder(ir::ExprPool& pool, TileProgram& program, DimsOf dims);

  // Roles of axes. The slot of an outer axis is its number in TileContext::axes.
  int set_outer(ir::Expr axis);
  void set_rows(std::vector<ir::Expr> axes);
  const std::vector<ir::Expr>& rows() const { return rows_; }
  // A scope whose columns are all there at once (a row of it fits a register).
  int fixed_scope(const std::vector<ir::Expr>& axes);
  // A scope whose columns are tiled, valid inside `in_loop`.
  int looped_scope(const std::vector<ir::Expr>& axes);

  // Runs `body` with a loop open under the block of depth `depth`; appends the loop.
  // A partial loop visits TileContext::parts only.
  void in_column_loop(int scope, int depth, const std::function<void()>& body,
                      bool partial = false);
  void in_axis_loop(ir::Expr axis, int depth, const std::function<void()>& body);
  // Within the loop of an axis: runs `body` with the instructions after every `period`th step.
  void at_part_end(ir::Expr axis, int64_t period, const std::function<void()>& body);
  // Runs `body` with the instructions that a scope's first tile skips.
  void after_first(int scope, const std::function<void()>& body);
  int depth() const { return static_cast<int>(stack_.size()) - 1; }

  // `expr`, of 4 bytes as registers hold it, for every value of `source`, of 8 bits, of which alone
  // it is a function; nullopt where it is a constant. `time`: microseconds that an element takes
  // without the table; may be null.
  static std::optional<ByteTable> table_of(ir::ExprPool& pool, ir::Expr expr, ir::Expr source,
                                           double* time = nullptr);

  // The value of an expression.
  RegisterId compile(ir::Expr expr);
  // The same for a store, which wraps integers around.
  RegisterId compile_to_store(ir::Expr expr);
  // Gives a leaf (or, by value number, a ranked result) its register.
  void bind(ir::Expr leaf, RegisterId r);
  void bind_ranked(int64_t value, RegisterId matrix, int64_t filled);
  // The reduction is computed along its row axis, which is alone in a fixed scope or, with a
  // `length`, the last of the rows, of which a task has whole runs.
  void bind_running(const cascade::Running& running, int64_t length = 0) {
    running_ = running;
    run_length_ = length;
  }

  // Registers and instructions for drivers that build loops of their own.
  RegisterId make(Elem elem, Shape shape, int scope, int depth);
  // A register that the driver points at memory of its own before a run.
  RegisterId make_view(Elem elem, Shape shape, int scope);
  RegisterId make_matrix(Elem elem, Shape shape, int scope, int depth, int64_t rows);
  // The same memory under a new number, as defined in a block of depth `depth`, so that
  // instructions on its new content are not merged with those on an earlier one.
  RegisterId renamed(RegisterId r, int depth);
  RegisterId constant(Elem elem, double number, int64_t integer);
  RegisterId identity(ir::Reduction reduction, DType dtype, Shape shape, int scope, int depth);
  void emit(std::unique_ptr<Instruction> instruction, int depth);
  void copy(RegisterId to, RegisterId from, int depth);
  RegisterId spread(RegisterId r, Shape shape, int scope);
  RegisterId converted(RegisterId r, Elem elem);
  RegisterId binary(BinaryOp op, RegisterId a, RegisterId b);
  const Register& info(RegisterId r) const { return program_.registers[static_cast<size_t>(r)]; }

  // accumulator ⊕= ⊕ over the columns of `scope` of `lift` (Sum, Prod, Max, Min).
  void reduce_into(ir::Reduction reduction, RegisterId accumulator, RegisterId lift, int scope);
  // The list of the `keep` best elements of a row.
  struct Ranked {
    RegisterId values, indices;
  };
  Ranked make_ranked(Elem elem, bool rows, int64_t keep, int depth);
  void keep_best(ir::Reduction reduction, const Ranked& list, int64_t keep, RegisterId lift,
                 int scope);
  // state += Σ over `scope` of lift, where state varies over rows and `columns`. The lift is
  // a product of factors of which none depends on both.
  void gemm_into(RegisterId state, ir::Expr lift, int scope, int columns);

  // Writes an expression to output number `output`, whose dimension i is indexed by axes[i].
  void store(int output, DType dtype, const Dims& dims, const std::vector<ir::Expr>& axes,
             RegisterId value, int scope);

  // The dimensions that an expression varies over, and the depth of the block that has all of them.
  struct Variation {
    Shape shape = Shape::Scalar;
    int scope = kNoScope;
    int depth = 0;
  };
  Variation variation(ir::Expr expr) const;

 private:
  struct Role {
    enum Kind { Slot, Row, Column } kind = Slot;
    int slot = -1, scope = kNoScope;
    int64_t inner = 1, extent = 1;  // of a row or column axis within its flattened list
    int depth = 0;
  };
  using Key = std::vector<int64_t>;
  struct OpenBlock {
    Block* block;
    std::unordered_map<ir::Expr, RegisterId> memo, modular, words;
    std::map<Key, RegisterId> numbers;
  };

  RegisterId build(ir::Expr expr);
  // The value, but of integers the words modulo 2^bits: they may lie outside the type.
  RegisterId compile_modular(ir::Expr expr);
  // An integer for a store of so many bits, in whatever class has its lowest ones.
  RegisterId compile_bits(ir::Expr expr, int bits);
  RegisterId build_axis(ir::Expr axis);
  // `words`: the element's bits as they are, in a register of the class of word_elem().
  RegisterId build_read(ir::Expr read, bool words = false);
  // The bits of an expression that only moves elements (moves_words).
  RegisterId compile_words(ir::Expr expr);
  RegisterId build_cast(ir::Expr cast);
  // A sum of int32 as one of float32, which is the same.
  RegisterId build_exact_sum(ir::Expr expr);
  RegisterId build_low_bit_cast(ir::Expr cast);
  RegisterId build_select(ir::Expr select);
  RegisterId select(RegisterId condition, RegisterId a, RegisterId b);
  // A position that counts from the end where it is negative, within bounds; kNoRegister for any
  // other expression.
  RegisterId build_position(ir::Expr expr);
  // The value of 8 bits of which the expression is a function: null for a constant, the expression
  // itself where it is a function of others or of several.
  ir::Expr byte_source(ir::Expr expr);
  // The expression as a table of a byte's values, where that is faster; else kNoRegister.
  RegisterId build_table(ir::Expr expr);
  RegisterId build_operation(ir::Expr expr);
  RegisterId build_arithmetic(ir::Expr expr);
  RegisterId build_power(ir::Expr expr);
  RegisterId power_by_products(RegisterId x, int64_t power);
  RegisterId build_reduce(ir::Expr reduce);
  RegisterId compile_term(ir::Expr reduce, ir::Expr body);
  RegisterId build_row_reduce(ir::Expr reduce, const Variation& v);
  RegisterId build_loop_reduce(ir::Expr reduce, const Variation& v);
  // total = total ⊕ x
  void combine_into(ir::Reduction reduction, RegisterId total, RegisterId x);
  RegisterId build_product(ir::Expr reduce, const Variation& v);
  RegisterId build_ranked(ir::Expr reduce, const Variation& v);
  RegisterId build_running();
  const std::vector<ir::Expr>& fixed_axes(const std::vector<ir::Expr>& bound);
  // Runs `body` as if the blocks below `depth` were not open.
  void at_depth(int depth, const std::function<void()>& body);
  RegisterId unary(UnaryOp op, RegisterId a, Elem result);
  RegisterId wrapped(RegisterId r, DType dtype);

  // The offset of an element in parts; see Access.
  Access analyze(ir::Expr offset, const std::vector<ir::Expr>& row_axes,
                 const std::vector<ir::Expr>& column_axes, int column_scope, int row_scope);
  std::optional<int64_t> flat_stride(const ir::Polynomial& part,
                                     const std::vector<ir::Expr>& axes) const;
  Access access_of(ir::Expr read, const std::vector<ir::Expr>& row_axes,
                   const std::vector<ir::Expr>& column_axes, int column_scope, int row_scope);
  ir::Expr offset_of(ir::Expr read);  // row-major
  int depth_of(const Access& access) const;
  // B of a product: rows over `contraction`, columns over `columns`; nullopt unless a plain tensor.
  std::optional<Access> tensor_operand(ir::Expr b, Elem elem, int contraction, int columns);
  RegisterId matrix_operand(ir::Expr b, Elem elem, ir::Expr row_axis, int columns);

  RegisterId numbered(const Key& key, int depth, const std::function<RegisterId()>& emit);
  int tensor_number(int64_t value);

  ir::ExprPool& pool_;
  TileProgram& program_;
  DimsOf dims_;
  std::vector<ir::Expr> rows_;
  std::unordered_map<int64_t, Role> roles_;  // by axis number
  std::map<std::vector<int64_t>, int> fixed_scopes_;
  std::map<std::vector<int64_t>, std::vector<ir::Expr>> fixed_axes_;  // of bound axes
  std::vector<OpenBlock> stack_;
  std::unordered_map<ir::Expr, ir::Expr> byte_sources_;
  bool tables_ = true;  // may be built
  std::unordered_map<ir::Expr, RegisterId> leaves_;
  std::map<int64_t, std::pair<RegisterId, int64_t>> ranked_;
  std::optional<cascade::Running> running_;
  int64_t run_length_ = 0;
  std::unordered_map<RegisterId, Instruction*>
      producers_;  // the only ones of registers that may be bound
  std::unordered_set<RegisterId> written_;
};

}  // namespace redfuser::cpu
