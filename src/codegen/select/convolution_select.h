// Which family computes a convolution: the tensor cores' kernel, that of depthwise ones, the
// product with the matrix of windows, or plain sums.
#pragma once

#include <string_view>

#include "codegen/convolution/convolution_step.h"
#include "codegen/core/kernel_config.h"

namespace redfuser::codegen {

// By estimate.
void choose_convolution(StepBuilder& builder, const ops::NodeView& view);
bool is_convolution(std::string_view domain, std::string_view name);
// Whether it is one of the kernels with configurations.
bool is_convolution_family(const std::string& family);
// By one configuration of such a kernel.
void generate_convolution(StepBuilder& builder, const ops::NodeView& view,
                          const KernelConfig& choice);
// As kernel_configs, for a convolution.
std::vector<Candidate> convolution_configs(StepBuilder& builder, const ops::NodeView& view);

}  // namespace redfuser::codegen
