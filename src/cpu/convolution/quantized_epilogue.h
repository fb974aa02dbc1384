// Epilogues of integer convolutions that end in a quantisation.
#pragma once

#include <optional>

#include "cpu/opaque/image/integers/quantized_sums.h"
#include "fuse/plan.h"

namespace redfuser::cpu {

// saturate(round(affine(sum)) + zero) to 8-bit integers, where the affine function has constants
// for each filter: scales, a bias, a division by the next scale. These are combined in float64.
// nullopt for other epilogues.
std::optional<QuantizedRows> quantized_rows(const ir::Graph& graph,
                                            const fuse::OpaqueStep::Epilogue& epilogue);

}  // namespace redfuser::cpu
