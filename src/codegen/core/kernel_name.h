// Names of kernels in machine code, in the kernel cache and in traces.
#pragma once

#include <string>

#include "fuse/plan.h"

namespace redfuser::codegen {

// "f16", "bf16", "i64", "bool".
std::string short_name(DType dtype);

// "<family>_<stages>_<dtype>_<8 hex>", such as "attention_hopper_max_sum_dot_f16_acd186cd": the
// reductions of the kernel's step in their order (a number follows those that repeat), the type of
// the step's first result, and the digest of the kernel's own text without its name.
std::string kernel_name(const std::string& family, const ir::Graph& graph, const fuse::Step& step,
                        const std::string& text);

}  // namespace redfuser::codegen
