// Reductions of the results of chains.
#pragma once

#include "cpu/tile/tile_program.h"

namespace redfuser::cpu {

// Replaces a chain and the Max, Min and Sum reductions of its result by one FoldedChain, and
// several such reductions of one view likewise, so that elements are loaded once. Requires merged
// chains.
void fold_chains(TileProgram& program);

}  // namespace redfuser::cpu
