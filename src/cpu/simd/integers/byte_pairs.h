// Signed bytes as one operand of sums of two products that saturate at 16 bits (pmaddubsw).
//
//   |a·x + b·y| ≤ |a + b| · 255 where a and b have one sign, and less where they differ.
//
// So a sum of a pair cannot saturate where |a + b| ≤ 128. Of other pairs the excess becomes a pair
// of its own, whose products are added: a·x + b·y = (a − r)·x + (b − s)·y + r·x + s·y.
#pragma once

#include <cstdint>

namespace redfuser::cpu {

// Above this share of groups with an excess, pairs of bytes do not save time.
inline constexpr double kMostSplit = 0.25;

// The excess of the pairs of a word of four bytes, which it loses; 0 where there is none.
inline uint32_t split_pairs(uint32_t& word) {
  constexpr int kMost = 128;
  uint32_t rest = 0, kept = 0;
  for (int at = 0; at < 32; at += 16) {
    const int a = static_cast<int8_t>(word >> at), b = static_cast<int8_t>(word >> (at + 8));
    const int sum = a + b;
    const int excess = sum > kMost ? sum - kMost : sum < -kMost ? sum + kMost : 0;
    const bool all = excess > 0 ? excess > a : excess < a;  // of a
    const int r = excess == 0 ? 0 : all ? a : excess, s = excess - r;
    const auto placed = [&](int first, int second) {
      return (static_cast<uint32_t>(first & 0xff) | static_cast<uint32_t>(second & 0xff) << 8)
             << at;
    };
    rest |= placed(r, s);
    kept |= placed(a - r, b - s);
  }
  word = kept;
  return rest;
}

}  // namespace redfuser::cpu
