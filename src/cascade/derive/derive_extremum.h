// Products, maxima and minima in streaming form.
#pragma once

#include <optional>

#include "cascade/derive/builder.h"

namespace redfuser::cascade {

// Each adds its stage to the builder, or says why it cannot.
std::optional<Refusal> derive_product(StreamingBuilder& builder, size_t stage);
std::optional<Refusal> derive_extremum(StreamingBuilder& builder, size_t stage);

}  // namespace redfuser::cascade
