// Filters of bytes that slide over channels, for any window: each of 16 positions finds its four
// taps of a line by a permutation of 64 bytes.
//
//   out[f][p] = start[f] + Σ_g Σ_t words[f][g][t] · tap t of group g at position p
//
// with signed words, unsigned taps and sums in int32 modulo 2^32.
#pragma once

#include <cstdint>

namespace redfuser::cpu {

// Output positions [first, first + count), at most kLanes.
struct ByteVector {
  static constexpr int64_t kLanes = 16;
  int32_t first, count;
};

// What the positions of a vector multiply by the word of a group: byte i, tap i % 4 of position
// i / 4, is in[offset + pattern[i]] where bit i of `inside` is set, else the padding.
struct ByteVectorTaps {
  uint64_t inside;
  int32_t offset, pattern;
};

struct BytePattern {
  uint8_t bytes[4 * ByteVector::kLanes];  // below 64
};

struct ByteVectorsArgs {
  static constexpr int kFilters = 4;

  int64_t count = 0, groups = 0;
  const ByteVector* vectors = nullptr;   // [count]
  const ByteVectorTaps* taps = nullptr;  // [count][groups]
  const BytePattern* patterns = nullptr;
  int64_t reach = 63;  // the most of the patterns' bytes
  uint8_t padding = 0;
  uint8_t flip = 0;  // applied to bytes and padding by exclusive or
  // [groups][kFilters]; weights that do not fit into a byte are sums of those of several rounds,
  // each `round` words after the one before.
  const uint32_t* words = nullptr;
  int64_t rounds = 1, round = 0;
  // Of each filter. 64 bytes are read from each offset. The same filter may be given twice.
  const uint8_t* in[kFilters] = {};
  int32_t starts[kFilters] = {};
  int32_t* out[kFilters] = {};
};

}  // namespace redfuser::cpu
