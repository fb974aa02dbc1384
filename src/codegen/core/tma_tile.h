// Tiles that TMA copies to shared memory, as src/device/hopper.cuh addresses them.
#pragma once

#include <string>
#include <vector>

#include "codegen/core/emitter.h"
#include "codegen/core/tma_view.h"

namespace redfuser::codegen {

// A tile of 16-bit elements with 128-byte swizzle: a slab of 64 columns after the other, each of
// them one box of the tensor map, `rows` rows of 128 bytes.
struct TmaTile {
  static constexpr int kSlabColumns = 64, kSlabRowBytes = 128;
  static constexpr int kAlignment = 1024;  // of tiles, in bytes: the swizzle repeats after 8 rows

  int rows;
  int64_t columns = kSlabColumns;

  static constexpr int slabs_of(int64_t columns) {
    return static_cast<int>((columns + kSlabColumns - 1) / kSlabColumns);
  }
  constexpr int slab_bytes() const { return rows * kSlabRowBytes; }
  constexpr int bytes() const { return slabs_of(columns) * slab_bytes(); }
  // The operand's tensor map, with a slab as its box.
  TmaView view(const TmaOperand& operand) const;
};

// The texts of the operand's coordinates behind the line, as int.
std::vector<std::string> coordinates(Emitter& emitter, const TmaOperand& operand);

}  // namespace redfuser::codegen
