// Products of one matrix with others on the tensor cores of sm_90, and any epilogue, in one kernel.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "codegen/core/kernel_text.h"
#include "codegen/core/step_builder.h"
#include "codegen/matrix/epilogue_work.h"

namespace redfuser::codegen {

// The kernel of src/device/product/product_loop.cuh.
inline constexpr const char* kProductKernelFamily = "product_tile";

// The kernel; nullopt if TMA cannot load the operands. `calls` has one entry per product, of which
// a, b and the sizes are used; entries differ in b. The epilogue reads nothing that it writes.
std::optional<KernelLaunch> product_kernel(StepBuilder& builder, const fuse::ProductStep& step,
                                           const std::vector<ProductCall>& calls,
                                           const ProductEpilogue& epilogue,
                                           const std::string& comment);

// How many terms of the rows, and of the columns, an element of memory is, on average: more than
// one of windows that overlap.
struct OperandReuse {
  double rows = 1, columns = 1;
};

// The operands of a product of windows of images and filters.
struct ProductWindows {
  const char* family;
  OperandReuse reuse;
  TmaView rows, columns;
  std::function<std::string(KernelText&)> operands;  // the text of WindowOperands
};
// By the same tiles, for terms in steps of device/product/product_operands.cuh: sizes and the type
// of `call` are used.
KernelLaunch window_product_kernel(StepBuilder& builder, const fuse::ProductStep& step,
                                   const ProductCall& call, const ProductWindows& windows,
                                   const ProductEpilogue& epilogue, const std::string& comment);

// Microseconds by estimate of `products` products like `call` at the builder's sizes. Infinite for
// unknown sizes, and for more products than a tile takes.
double product_kernel_time(StepBuilder& builder, const ProductCall& call, size_t products,
                           const EpilogueWork& work, const OperandReuse& reuse = {});

}  // namespace redfuser::codegen
