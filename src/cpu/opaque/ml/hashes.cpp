// MurmurHash3 of com.microsoft: the 32-bit hash of A. Appleby's MurmurHash3 (x86 form), of each
// element's bytes; of texts, those of UTF-8.
#include <bit>
#include <cstring>

#include "cpu/opaque/opaque_kernels.h"

namespace redfuser::cpu {
namespace {

uint32_t mixed(uint32_t word) { return std::rotl(word * 0xcc9e2d51u, 15) * 0x1b873593u; }

uint32_t murmur_hash(const char* bytes, size_t count, uint32_t seed) {
  uint32_t hash = seed;
  size_t at = 0;
  for (uint32_t word; at + sizeof(word) <= count; at += sizeof(word)) {
    std::memcpy(&word, bytes + at, sizeof(word));
    hash = std::rotl(hash ^ mixed(word), 13) * 5 + 0xe6546b64u;
  }
  uint32_t rest = 0;
  std::memcpy(&rest, bytes + at, count - at);
  hash ^= mixed(rest) ^ static_cast<uint32_t>(count);
  hash = (hash ^ hash >> 16) * 0x85ebca6bu;
  hash = (hash ^ hash >> 13) * 0xc2b2ae35u;
  return hash ^ hash >> 16;
}

}  // namespace

void run_murmur_hash(OpaqueCall& call) {
  const Tensor& x = call.tensor(0);
  const auto seed = static_cast<uint32_t>(call.integer("seed", 0));
  const size_t width = size_of(x.dtype());
  Tensor& y = call.allocate(0, x.dims());
  for (int64_t i = 0; i < x.size(); ++i) {
    const bool is_text = x.dtype() == DType::String;
    const char* bytes = is_text ? x.text(i).data() : x.as<char>() + static_cast<size_t>(i) * width;
    y.as<uint32_t>()[i] = murmur_hash(bytes, is_text ? x.text(i).size() : width, seed);
  }
}

}  // namespace redfuser::cpu
