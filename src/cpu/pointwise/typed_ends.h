// Conversions that chains of operations do themselves.
#pragma once

#include "cpu/tile/tile_program.h"

namespace redfuser::cpu {

// Elements of types that chains read and write (chain_type), side by side in memory: a conversion
// to float32 after a load and one before a store become chains without links, with the memory as
// their operand or result. merge_chains puts what stands beside them into them.
void convert_in_chains(TileProgram& program);

}  // namespace redfuser::cpu
