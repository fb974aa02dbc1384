// How the emulated driver writes a tensor map, which its TMA reads.
#pragma once

#include <cstdint>

namespace emulated {

struct TensorMapBits {
  uint64_t address;
  uint64_t dims[5], strides[4];  // elements; bytes
  uint16_t box[5];
  uint8_t rank, swizzle;
};
static_assert(sizeof(TensorMapBits) <= 128);

}  // namespace emulated
