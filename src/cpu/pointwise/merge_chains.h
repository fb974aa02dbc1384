// Chains of pointwise operations in tile programs.
#pragma once

#include "cpu/tile/tile_program.h"

namespace redfuser::cpu {

// Makes one instruction of operations on floats whose results only the next operation reads, so
// that they are kept in vector registers. Results are the same. For programs whose registers only
// their own instructions read; before their layout.
void merge_chains(TileProgram& program);

}  // namespace redfuser::cpu
