// Functions of one value of 8 bits as tables of their 256 values.
#pragma once

#include <cstdint>
#include <cstring>

namespace redfuser::cpu {

// Elements of 4 bytes, of the values from `lowest` on.
struct ByteTable {
  static constexpr int64_t kValues = 256;

  ByteTable() = default;
  ByteTable(const uint32_t* of, int64_t lowest_value) : lowest(lowest_value) {
    std::memcpy(elements, of, sizeof(elements));
    for (int64_t i = 0; i < kValues; ++i) {
      for (int p = 0; p < 4; ++p) planes[p][i] = static_cast<uint8_t>(elements[i] >> (8 * p));
      bytes &= elements[i] < kValues;
    }
  }

  alignas(64) uint32_t elements[kValues];
  alignas(64) uint8_t planes[4][kValues];  // byte p of all elements
  int64_t lowest = 0;
  bool bytes = true;  // all elements are below 256: planes above the first one hold 0
};

}  // namespace redfuser::cpu
