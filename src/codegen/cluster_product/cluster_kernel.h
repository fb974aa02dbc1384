// The kernel of products whose depth the blocks of a cluster divide.
#pragma once

#include <optional>
#include <string>

#include "codegen/cluster_product/cluster_config.h"
#include "codegen/matrix/product_epilogue.h"

namespace redfuser::codegen {

// For any number of rows; nullopt if TMA cannot load the operands.
std::optional<KernelLaunch> cluster_kernel(StepBuilder& builder, const fuse::ProductStep& step,
                                           const ClusterForm& form, const ClusterConfig& config,
                                           const ProductEpilogue& epilogue,
                                           const std::string& comment);

}  // namespace redfuser::codegen
