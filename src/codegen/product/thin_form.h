// A product of which one side has few lines: a wide matrix and a thin one
// (src/device/product/thin_product.cuh).
#pragma once

#include <optional>
#include <vector>

#include "codegen/core/step_builder.h"

namespace redfuser::codegen {

// Element k of line l of a batch's matrix: buffer[offset + batch · b + line · l + depth · k].
struct ThinMatrix {
  BufferRef buffer;
  ir::Expr offset, batch, line, depth;
};

struct ThinForm {
  DType dtype = DType::Float16;
  std::vector<ThinMatrix> wide;  // of every product, of one size and layout
  ThinMatrix thin;
  bool constant = false;                 // the wide matrices are constants of the graph
  bool columns = false;                  // the thin lines are the product's columns, else its rows
  ir::Expr batch, extent, lines, depth;  // extent: wide lines; depth: of the contracted axis

  // The wide matrices are contiguous along the contracted axis, else along their lines.
  bool along() const { return wide[0].depth->is_constant(1); }
  // Elements of a 16-byte load.
  int width() const { return 16 / static_cast<int>(size_of(dtype)); }
};

// Thin lines of a kernel, at most.
inline constexpr int64_t kMostThinLines = 16;

// nullopt if no side has few lines, or the operands are not floats of 16 or 32 bits. `calls` has an
// entry per product, as product_kernel, with operands of the graph. Lines that are symbols are
// taken as few.
std::optional<ThinForm> thin_form(const ir::Graph& graph, const std::vector<ProductCall>& calls);

}  // namespace redfuser::codegen
