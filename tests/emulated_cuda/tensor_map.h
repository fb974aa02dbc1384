// How the emulated driver writes a tensor map, which its TMA reads.
#pragma once

#include <cstdint>

namespace emulated {

struct TensorMapBits {
  uint64_t address;
  uint64_t dims[5], strides[4];  // elements; bytes
  uint16_t box[5];               // of windows: channels and windows
  uint8_t rank, swizzle;
  bool windows;
  int8_t lower[3], upper[3], steps[3];  // of windows, innermost first
};
static_assert(sizeof(TensorMapBits) <= 128);

}  // namespace emulated
