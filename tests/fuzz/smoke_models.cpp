// Inputs that are models: the mutators that libFuzzer calls, for which bytes mutate in our own way.
#include <algorithm>

#include "fuzz/smoke.h"

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed);
extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* data, size_t size, const uint8_t* other,
                                            size_t other_size, uint8_t* out, size_t max_size,
                                            unsigned seed);

namespace {

constexpr size_t kLargest = 8192;

}  // namespace

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size) {
  // Deterministic: the number of the call decides.
  static redfuser::Random random(2);
  std::vector<uint8_t> bytes(data, data + size);
  redfuser::mutate_bytes(bytes, random);
  const size_t kept = std::min(bytes.size(), max_size);
  std::copy_n(bytes.begin(), kept, data);
  return kept;
}

namespace redfuser {

void mutate_input(std::vector<uint8_t>& input, const std::vector<uint8_t>& other, Random& random) {
  const size_t size = input.size(), most = std::max(kLargest, size);
  std::vector<uint8_t> result(most);
  const auto seed = static_cast<unsigned>(random());
  size_t written = 0;
  if (random() % 4 == 0) {
    written = LLVMFuzzerCustomCrossOver(input.data(), size, other.data(), other.size(),
                                        result.data(), most, seed);
  } else {
    std::copy(input.begin(), input.end(), result.begin());
    written = LLVMFuzzerCustomMutator(result.data(), size, most, seed);
  }
  if (written == 0) return;
  result.resize(written);
  input = std::move(result);
}

}  // namespace redfuser
