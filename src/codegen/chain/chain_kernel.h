// The kernel of two chained products.
#pragma once

#include <optional>

#include "codegen/chain/chain_config.h"

namespace redfuser::codegen {

// For any number of rows; nullopt if TMA cannot load the operands. Several clusters take a scratch
// buffer of the builder.
std::optional<KernelLaunch> chain_kernel(StepBuilder& builder, const ChainForm& form,
                                         const ChainConfig& config);

}  // namespace redfuser::codegen
