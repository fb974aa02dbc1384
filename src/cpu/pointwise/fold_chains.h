// Reductions of the results of chains.
#pragma once

#include "cpu/tile/tile_program.h"

namespace redfuser::cpu {

// Makes one instruction of a chain and the maxima, minima and sums of its rows, and of several of
// these of one view, so that the elements are in registers once for all of them. After the chains
// of the program are merged.
void fold_chains(TileProgram& program);

}  // namespace redfuser::cpu
