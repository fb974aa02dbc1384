// Which kernels of ours compute a product, in place of the product library.
#pragma once

#include <vector>

#include "codegen/product/product_kernel.h"

namespace redfuser::codegen {

struct OwnKernel {
  ir::Expr when;  // a bool over sizes: this kernel computes the product there, and no other does
  KernelLaunch launch;
};

// By the builder's product family. `calls` as product_kernel; `library_alone`: the library needs no
// kernel after it. `epilogue` writes a value of the graph.
std::vector<OwnKernel> own_kernels(StepBuilder& builder, const fuse::ProductStep& step,
                                   const std::vector<ProductCall>& calls,
                                   const ProductEpilogue& epilogue, bool library_alone,
                                   const std::string& comment);

}  // namespace redfuser::codegen
