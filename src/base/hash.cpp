#include "base/hash.h"

#include <cstring>

namespace redfuser {

uint64_t hash_bytes(const void* data, size_t bytes, uint64_t seed) {
  const auto* at = static_cast<const unsigned char*>(data);
  uint64_t hash = hash_combine(seed, bytes);
  for (; bytes >= 8; bytes -= 8, at += 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    hash = hash_combine(hash, word);
  }
  uint64_t tail = 0;
  for (size_t i = 0; i < bytes; ++i) tail |= static_cast<uint64_t>(at[i]) << (8 * i);
  return bytes > 0 ? hash_combine(hash, tail) : hash;
}

}  // namespace redfuser
