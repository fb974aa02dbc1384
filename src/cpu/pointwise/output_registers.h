// Registers of a tile program that are the memory of an output.
#pragma once

#include "cpu/tile/tile_program.h"

namespace redfuser::cpu {

// Binds a register to the output's memory where the last instruction that reads it computes the
// output element by element: a pass that would only write then finds its lines near. Before the
// layout.
void compute_in_outputs(TileProgram& program);

}  // namespace redfuser::cpu
