// The families of kernels that no generator here writes.
#pragma once

#include "codegen/core/gpu_step.h"
#include "select/choice.h"
#include "select/work.h"

namespace redfuser::codegen {

using select::best_choices;
using select::Candidate;
using select::KernelConfig;
using select::kMaxChoices;
using select::KnownSizes;

// The family of a step that calls the product library.
inline constexpr const char* kLibraryFamily = "library";
// A region divided into steps, which may call it.
inline constexpr const char* kDivisionFamily = "unfused";

}  // namespace redfuser::codegen
