// Epilogues of integer convolutions that end in a quantisation.
#pragma once

#include <array>
#include <optional>

#include "cpu/opaque/image/integers/quantized_sums.h"
#include "fuse/plan.h"

namespace redfuser::cpu {

// saturate(round(affine(sum)) + zero) to 8-bit integers, where the affine function has constants
// for each filter: scales, a bias, a division by the next scale. These are combined in float64.
struct QuantizedHead {
  ir::Expr expr;  // in the epilogue's body, which has no sums outside of it
  QuantizedRows rows;
};

// What follows a head, as the kernels take it: a quantisation of the sum of the head's and another
// value's codes of 8 bits, each times a constant.
struct QuantizedRest {
  ir::ValueId value;       // of the output's sizes
  IntegerResidual second;  // without bytes
};
std::optional<QuantizedRest> quantized_rest(const ir::Graph& graph,
                                            const fuse::OpaqueStep::Epilogue& epilogue,
                                            ir::Expr head);

// The epilogue as a function of the head's codes alone, of codes as unsigned bytes; nullopt for
// others, and for results of more than 8 bits.
using CodeTable = std::array<uint8_t, 256>;
std::optional<CodeTable> table_after(const fuse::OpaqueStep::Epilogue& epilogue, ir::Expr head);

// Of sums of `terms` products of differences of bytes; nullopt for other epilogues.
std::optional<QuantizedHead> quantized_head(const ir::Graph& graph,
                                            const fuse::OpaqueStep::Epilogue& epilogue,
                                            int64_t terms);

}  // namespace redfuser::cpu
