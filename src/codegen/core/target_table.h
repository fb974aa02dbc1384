// GPUs that kernels are generated for without one at hand.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "codegen/core/gpu_step.h"

namespace redfuser::codegen {

struct NamedTarget {
  std::string_view name;  // as NVRTC calls the architecture
  Target target;          // of one GPU that has it
};
std::span<const NamedTarget> known_targets();

// UserError with the names that there are.
const Target& target_named(std::string_view name);

}  // namespace redfuser::codegen
