// The kernel of a recurrent layer's steps, src/device/recurrent/layer.cuh.
#pragma once

#include "codegen/recurrent/recurrent_config.h"

namespace redfuser::codegen {

// `inputs`: the scratch buffer of add_input_product.
KernelLaunch recurrent_kernel(StepBuilder& builder, const ops::NodeView& view,
                              const RecurrentForm& form, const RecurrentConfig& config,
                              int64_t inputs);

}  // namespace redfuser::codegen
