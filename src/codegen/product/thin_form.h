// A product of which one side has few lines: a wide matrix and a thin one
// (src/device/product/thin_product.cuh).
#pragma once

#include <optional>
#include <vector>

#include "codegen/core/step_builder.h"
#include "codegen/matrix/coded_operand.h"
#include "codegen/matrix/epilogue_work.h"

namespace redfuser::codegen {

// Element k of line l of a batch's matrix: buffer[offset + batch · b + line · l + depth · k].
struct ThinMatrix {
  BufferRef buffer;
  ir::Expr offset, batch, line, depth;
};

struct ThinForm {
  DType dtype = DType::Float16;
  std::vector<ThinMatrix> wide;  // of every product, of one size and layout
  // The same in few bits, where all are constants of equally many and in equal blocks; else empty.
  std::vector<CodedOperand> coded;
  ThinMatrix thin;
  bool given = false;    // the wide matrices alone are constants or inputs of the graph
  bool columns = false;  // the thin lines are the product's columns, else its rows
  ir::Expr batch, extent, lines, depth;  // extent: wide lines; depth: of the contracted axis
  EpilogueWork epilogue;

  // The wide matrices are contiguous along the contracted axis, else along their lines.
  bool along() const { return !coded.empty() || wide[0].depth->is_constant(1); }
  // Bits of a wide matrix' element; elements of a scale, for those of few bits.
  int bits() const {
    return coded.empty() ? 8 * static_cast<int>(size_of(dtype)) : coded[0].codes->bits;
  }
  int64_t block() const { return coded[0].codes->block; }
  // Elements of a 16-byte load.
  int width() const { return 16 / static_cast<int>(size_of(dtype)); }
};

// Lines in few bits that are stored together.
inline constexpr int64_t kCodedLines = 8;
// Thin lines of a kernel, at most.
inline constexpr int64_t kMostThinLines = 16;

// nullopt if no side has few lines, or the operands are not floats of 16 or 32 bits. `calls` has an
// entry per product of the step, as product_kernel, with operands of the graph. Lines that are
// symbols are taken as few.
std::optional<ThinForm> thin_form(const ir::Graph& graph, const fuse::ProductStep& step,
                                  const std::vector<ProductCall>& calls);

}  // namespace redfuser::codegen
