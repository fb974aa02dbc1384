// Products of a wide matrix and one of a few lines, and any epilogue, in one kernel
// (src/device/product/thin_product.cuh).
#pragma once

#include "codegen/product/product_kernel.h"
#include "codegen/product/thin_config.h"

namespace redfuser::codegen {

KernelLaunch thin_kernel(StepBuilder& builder, const fuse::ProductStep& step, const ThinForm& form,
                         const ThinConfig& config, const ProductEpilogue& epilogue,
                         const std::string& comment);

}  // namespace redfuser::codegen
