// GPU implementations of operators without a lowering, by name.
#pragma once

#include <string_view>

#include "codegen/core/step_builder.h"

namespace redfuser::codegen {

// Whether generate_opaque has the operator of the domain.
bool has_opaque_kernel(std::string_view domain, std::string_view name);

// Whether its kernels find the size of the results (GpuStep::found).
bool has_size_kernel(std::string_view domain, std::string_view name);

// Throws UserError that names the node if the operator has no kernel on a GPU.
void generate_opaque(StepBuilder& builder, const fuse::OpaqueStep& step);

}  // namespace redfuser::codegen
