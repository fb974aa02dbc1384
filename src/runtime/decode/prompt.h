// Prompts as tensors.
#pragma once

#include "runtime/decode/decoder_inputs.h"

namespace redfuser::runtime {

// The rows of a prompt and its mask, which may be undefined, as of Generator::generate. UserError
// for another type or rank, and for padding on the right or everywhere.
std::vector<TokenRow> rows_of(const Tensor& prompt, const Tensor& mask);

}  // namespace redfuser::runtime
