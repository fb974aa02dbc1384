// Which cascades are of the attention class.
#pragma once

#include <optional>

#include "codegen/attention/attention.h"

namespace redfuser::codegen {

// nullopt if the cascade is not of this class, or has a size or type that no kernel supports.
std::optional<AttentionSpec> recognize_attention(StepBuilder& builder,
                                                 const fuse::CascadeStep& step);

}  // namespace redfuser::codegen
