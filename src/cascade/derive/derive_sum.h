// Sums in streaming form.
#pragma once

#include <optional>

#include "cascade/derive/builder.h"

namespace redfuser::cascade {

// Π of a term's streamed factors, times exp(Σ exp_x - safe) where `safe` is given; factors with
// columns come last, as one operand.
ir::Expr lift_of(StreamingBuilder& builder, size_t stage, const Term& term, ir::Expr safe,
                 DType dtype);

// Adds the stage to the builder, or says why it cannot.
std::optional<Refusal> derive_sum(StreamingBuilder& builder, size_t stage);

}  // namespace redfuser::cascade
