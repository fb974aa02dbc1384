// Products of a wide matrix and one of a few lines, and any epilogue, in one kernel
// (src/device/product/thin_product.cuh).
#pragma once

#include <functional>

#include "codegen/product/product_kernel.h"
#include "codegen/product/thin_config.h"

namespace redfuser::codegen {

// Lines of the thin matrix that a block makes itself, contiguous in its shared memory.
struct ThinLines {
  std::string_view family;  // of the kernel
  std::string_view header;  // of src/device, instead of thin_product.cuh, which it includes
  std::string before;       // text at namespace scope
  std::string lines;        // statements that declare `lines`, a pointer to the first one
  // What makes them, the lines of ThinProduct::multiply; and a bool as text: they may be made by
  // aligned 16-byte vectors.
  std::string make, vector;
  ir::Expr pitch;                     // elements from a line to the next, a multiple of 16 bytes
  int shared = 0, static_shared = 0;  // bytes, besides those of the product
};
using MakeThinLines = std::function<ThinLines(KernelText&)>;

// `lines`: by which the block makes the thin matrix, which the kernel then does not load.
KernelLaunch thin_kernel(StepBuilder& builder, const fuse::ProductStep& step, const ThinForm& form,
                         const ThinConfig& config, const ProductEpilogue& epilogue,
                         const std::string& comment, const MakeThinLines& lines = nullptr);

}  // namespace redfuser::codegen
