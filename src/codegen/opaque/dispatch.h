// GPU implementations of operators without a lowering, by name.
#pragma once

#include "codegen/core/step_builder.h"

namespace redfuser::codegen {

// Throws UserError that names the node if the operator has no kernel on a GPU.
void generate_opaque(StepBuilder& builder, const fuse::OpaqueStep& step);

}  // namespace redfuser::codegen
