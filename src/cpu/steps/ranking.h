// How tile programs keep lists of the best elements: by insertion, or sorted and merged.
#pragma once

#include <cstdint>
#include <vector>

#include "cpu/tile/tile_program.h"
#include "select/choice.h"

namespace redfuser::cpu {

// The program keeps lists; and the number of elements of the longest, 0 without lists.
bool ranks(const TileProgram& program);
int64_t longest_list(const TileProgram& program);

// What there is to choose from: {false} where insertion serves lists of any order.
std::vector<bool> ranking_choices(const TileProgram& program);

// Of every list.
void set_merges(TileProgram& program, bool merges);
// By the parameter "merges", where the choice has it.
void set_merges(TileProgram& program, const select::KernelConfig& choice);

// Tiles of `tile` elements where a loop of their own fills lists, or as long as a list that is
// merged, so that sorting takes n log n.
void set_list_tiles(TileProgram& program, int64_t tile);

}  // namespace redfuser::cpu
