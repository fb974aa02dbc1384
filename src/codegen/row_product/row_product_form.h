// Cascades over the columns of a matrix product: rows of it are reduced by the block that makes
// them (src/device/product/row_product.cuh).
#pragma once

#include <string>
#include <variant>

#include "codegen/functor/flat_streaming.h"
#include "codegen/matrix/matrix_layout.h"

namespace redfuser::codegen {

struct RowProductForm {
  FlatStreaming rows;            // the product's elements are Reads of `product`
  int64_t product = -1;          // a scratch value without memory: a block has its rows
  int64_t pitch = 0;             // elements from a row of it to the next
  DType dtype = DType::Float16;  // of the operands; sums have the type of `product`
  BufferRef left, right;         // [count, depth] and [depth, columns]
  MatrixLayout left_layout, right_layout;
  ir::Expr count = nullptr, depth = nullptr;
  int64_t columns = 0;

  // The columns are contiguous along the contracted axis, else its elements along the columns.
  bool by_rows() const { return right_layout.row->is_constant(1); }
  // Columns of the tensor cores' product.
  int padded() const;
  // Groups of `width` elements of a lane where `lanes` of a warp have a row.
  int chunks(int lanes, int width) const;
};

// The most columns of a product, and elements of a lane.
inline constexpr int64_t kMostProductColumns = 256;
inline constexpr int kMostLaneElements = 32;

// The form, or why there is none. The builder takes the scratch value.
std::variant<RowProductForm, std::string> row_product_form(StepBuilder& builder,
                                                           const fuse::CascadeStep& step,
                                                           const FlatStreaming& rows);

}  // namespace redfuser::codegen
