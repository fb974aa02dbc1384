// GPU steps as text.
#pragma once

#include <string>

#include "codegen/core/gpu_step.h"

namespace redfuser::codegen {

// The calls of a step: family, name, launch and parameters of kernels, sizes of library calls.
std::string to_string(const ir::ExprPool& pool, const GpuStep& step);

// The user's nodes and the parameters of this launch as a comment.
std::string heading_of(const KernelLaunch& launch);
// The text of a kernel, which includes the headers of src/device where the source has their text.
std::string cuda_text(const KernelLaunch& launch);

}  // namespace redfuser::codegen
