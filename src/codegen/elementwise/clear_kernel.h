// Numbers that kernels count with, made 0 before.
#pragma once

#include <string>

#include "codegen/core/step_builder.h"

namespace redfuser::codegen {

// A kernel that makes the first `count` integers of a scratch buffer zero.
KernelLaunch clear_kernel(StepBuilder& builder, const std::string& name, int64_t scratch,
                          ir::Expr count);

}  // namespace redfuser::codegen
