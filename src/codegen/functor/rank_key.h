// The number that orders the elements of a ranked reduction (src/device/ranking/ranking.cuh).
#pragma once

#include <string>
#include <string_view>

#include "codegen/core/emitter.h"
#include "codegen/functor/flat_streaming.h"

namespace redfuser::codegen {

// Its type in CUDA, and its text where the emitter binds the element.
std::string_view key_type(const cascade::Accumulator& accumulator);
std::string key_text(Emitter& emitter, const cascade::Accumulator& accumulator);

}  // namespace redfuser::codegen
