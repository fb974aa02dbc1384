// Where the elements of a matrix product's operands and result lie, for fixed sizes.
#pragma once

#include <optional>
#include <vector>

#include "cpu/simd/kernel_table.h"
#include "cpu/tile/tile_builder.h"

namespace redfuser::cpu {

// The value of an integer expression at a point of its axes.
int64_t index_at(ir::Expr expr, const std::vector<ir::Expr>& axes,
                 const std::vector<int64_t>& point);

// One part of an offset over a flattened list of axes: a stride, or a table of offsets.
struct OffsetPart {
  int64_t stride = 0;
  std::vector<int64_t> table;  // empty: position * stride
  int64_t at(int64_t position) const {
    return table.empty() ? position * stride : table[static_cast<size_t>(position)];
  }
  bool operator==(const OffsetPart&) const = default;
};

// offset = constant + Σ parts, one for each list of axes.
struct SeparatedOffset {
  int64_t constant = 0;
  std::vector<OffsetPart> parts;
  bool operator==(const SeparatedOffset&) const = default;
};

// nullopt if a term of the offset depends on two of the lists, or on data.
std::optional<SeparatedOffset> separate(ir::ExprPool& pool, ir::Expr offset,
                                        const std::vector<std::vector<ir::Expr>>& lists);

// The matrix of part `rows` from `row` on and part `columns` from `column` on, at a point of part
// 0, the batch. Offsets count elements of `dtype` from `data`; `s` outlives the view.
MatrixView view_of(const SeparatedOffset& s, const char* data, DType dtype, int64_t batch, int rows,
                   int64_t row, int columns, int64_t column);

// The row-major offset of indices into a tensor of size `dims`.
ir::Expr flat_offset(ir::ExprPool& pool, const std::vector<ir::Expr>& indices, const Dims& dims);

}  // namespace redfuser::cpu
