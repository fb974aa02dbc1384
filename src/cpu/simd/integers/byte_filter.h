// Filters of bytes that slide over a channel, by dot products of four bytes along its lines.
//
//   out[line, column] = start + Σ_k Σ_t word[k][t] · in[line · line_step + column · step +
//   offset[k] + reach[t]]
//
// with signed words, unsigned elements and sums in int32 modulo 2^32.
#pragma once

#include <cstdint>

namespace redfuser::cpu {

// The bytes that each of four successive columns multiplies by a word: `taps` of them, `dilation`
// apart. Columns lie `step` apart.
struct ByteSpread {
  // The most taps of a word; 0 where the columns lie too far apart for the kernels.
  static constexpr int64_t most_taps(int64_t step, int64_t dilation) {
    if (step > 4) return 0;
    const int64_t more = (15 - 3 * step) / dilation;
    return more < 3 ? more + 1 : 4;
  }
  ByteSpread(int64_t step, int64_t dilation) {
    const int64_t taps = most_taps(step, dilation);
    for (int64_t i = 0; i < 16; ++i) {
      words[i] = static_cast<int32_t>(i / 4 * step + i % 4);
      bytes[i] = static_cast<uint8_t>(i % 4 < taps ? i / 4 * step + i % 4 * dilation : 0x80);
    }
  }

  int32_t words[16];  // words of 64 bytes that 16 columns read, 4 for each 4 of them
  uint8_t bytes[16];  // of those 16 bytes, 4 for each column; 0x80 for 0
};

struct ByteFilterArgs {
  int64_t lines = 0, columns = 0;
  int64_t line_step = 0, step = 1;
  const ByteSpread* spread = nullptr;
  // Read up to kByteFilterSlack bytes from the first of each column's.
  const uint8_t* in = nullptr;
  int64_t count = 0;  // of words
  const uint32_t* words = nullptr;
  const int32_t* numbers = nullptr;  // word k has the offset offsets[numbers[k]]
  const int64_t* offsets = nullptr;
  int32_t start = 0;
  int32_t* out = nullptr;  // lines · columns
};
inline constexpr int64_t kByteFilterSlack = 64;

struct ByteVectorsArgs;  // in byte_vectors.h

struct ByteFilterKernel {
  void (*run)(const ByteFilterArgs&);
  bool saturates;                               // words are to be split by split_pairs
  void (*run_vectors)(const ByteVectorsArgs&);  // faster; null where the machine has none
};

}  // namespace redfuser::cpu
