// The instructions of tile programs that touch tensors, and products.
#pragma once

#include <utility>

#include "cpu/tile/tile_instructions.h"

namespace redfuser::cpu {

// constant + Σ coefficient · (outer or loop axis) + an I64 scalar register.
struct Linear {
  int64_t constant = 0;
  std::vector<std::pair<int, int64_t>> terms;  // axis slot, coefficient
  RegisterId scalar = kNoRegister;
  int64_t evaluate(const TileContext& machine) const;
};

// Where the elements of a tensor that a tile touches are: base + row part + column part, each part
// a stride or a table of offsets (an I64 register), and a part that varies over both.
struct Access {
  int tensor = -1;  // number in the program's tensors (or outputs, for stores)
  DType dtype = DType::Undefined;
  int64_t size = 0;  // elements of the tensor
  Linear base;
  int64_t row_stride = 0;
  RegisterId row_offsets = kNoRegister;
  int64_t column_stride = 0;
  RegisterId column_offsets = kNoRegister;
  // Offsets of every row and column, which are multiplied by whole_scale. Where it is set,
  // column_offsets is not.
  RegisterId whole = kNoRegister;
  int64_t whole_scale = 1;
  bool by_data = false;   // a table of columns depends on elements, not on axes alone
  bool in_range = false;  // proved for every row and column; else offsets are clamped
  bool words = false;     // the register has the elements' bits, of whatever type
  bool copies() const { return words || same_storage(dtype); }  // without conversion
  std::vector<RegisterId> registers() const;
};

// Binds `view` to elements that lie side by side in memory, without a copy. Requires in_range, unit
// stride along the register's innermost direction and storage of the register's own class.
struct LoadView final : Instruction {
  LoadView(RegisterId view, Access access);
  void run(TileContext& machine) const override;
  Access access;
};

// Copies elements into a dense register, converting and clamping.
struct LoadCopy final : Instruction {
  LoadCopy(RegisterId out, Access access);
  void run(TileContext& machine) const override;
  Access access;
};

// Writes a register to an output. The register has all the columns (and rows) of the access.
struct Store final : Instruction {
  Store(Access access, RegisterId a, Shape shape, int scope);
  void run(TileContext& machine) const override;
  Access access;
  Shape shape;  // of the region written
  int scope;
};

// Binds `view` to output memory, so that the instruction which computes it needs no store. The
// output has unit column stride and storage of the register's class.
struct BindOutput final : Instruction {
  BindOutput(RegisterId view, Access access);
  void run(TileContext& machine) const override;
  Access access;
};

// out (+)= A · B. A is a register, rows by the contraction; B is a tensor or a matrix register.
struct Gemm final : Instruction {
  Gemm(RegisterId out, RegisterId a, int contraction_scope, bool accumulate);
  void set_b(Access access);                       // rows: contraction; columns: the result's
  void set_b(RegisterId matrix, bool transposed);  // transposed: one row per result column
  void run(TileContext& machine) const override;
  int contraction_scope;
  bool accumulate;
  bool b_is_register = false, b_transposed = false;
  Access b;
};

}  // namespace redfuser::cpu
