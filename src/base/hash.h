// Deterministic 64-bit hashing (the same on every host), for tables and cache keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace redfuser {

// Mixes `value` into `seed` (the finaliser of MurmurHash3 over their combination).
constexpr uint64_t hash_combine(uint64_t seed, uint64_t value) {
  uint64_t h = seed ^ (value + 0x9e3779b97f4a7c15ull + (seed << 6) + (seed >> 2));
  h = (h ^ (h >> 33)) * 0xff51afd7ed558ccdull;
  h = (h ^ (h >> 33)) * 0xc4ceb9fe1a85ec53ull;
  return h ^ (h >> 33);
}

uint64_t hash_bytes(const void* data, size_t bytes, uint64_t seed = 0);
inline uint64_t hash_text(std::string_view text, uint64_t seed = 0) {
  return hash_bytes(text.data(), text.size(), seed);
}

}  // namespace redfuser
