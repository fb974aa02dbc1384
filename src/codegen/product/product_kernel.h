// Matrix products of one matrix on the tensor cores of sm_90 and an epilogue of any kind in one
// kernel.
#pragma once

#include <optional>

#include "codegen/core/step_builder.h"

namespace redfuser::codegen {

// value[offset] = epilogue over the product leaves, flat reads and the step's axes.
struct ProductEpilogue {
  ir::Expr body;
  std::vector<ir::Expr> products;
  int64_t value;
  ir::Expr offset;
};

// The kernel, or nullopt for operands that the copy engine cannot fetch. Of `calls`, one for each
// product, a, b and the sizes are used; they differ in b.
std::optional<KernelLaunch> product_kernel(StepBuilder& builder, const fuse::ProductStep& step,
                                           const std::vector<ProductCall>& calls,
                                           const ProductEpilogue& epilogue,
                                           const std::string& comment);

// A bool over sizes: by estimate, the kernel takes less time than the library's products, so many
// like `call`, and a map after them. False where columns or depth are not known.
ir::Expr is_product_kernel_profitable(ir::ExprPool& pool, const ProductCall& call, size_t products,
                                      const Target& target);

}  // namespace redfuser::codegen
