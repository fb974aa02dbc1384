// Reductions of the results of chains.
#pragma once

#include <optional>

#include "cpu/tile/tile_program.h"

namespace redfuser::cpu {

// How the instruction reduces the rows of `value`, float32, if a chain can fold its results so.
std::optional<ReduceOp> fold_of(const Instruction& instruction, RegisterId value);

// Replaces a chain and the Max, Min and Sum reductions of its result by one FoldedChain, and
// several such reductions of one view likewise, so that elements are loaded once. Requires merged
// chains.
void fold_chains(TileProgram& program);

}  // namespace redfuser::cpu
