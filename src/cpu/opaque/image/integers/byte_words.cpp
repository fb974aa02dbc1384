#include "cpu/opaque/image/integers/byte_words.h"

#include <algorithm>
#include <array>

#include "cpu/simd/integers/byte_pairs.h"
#include "redfuser/memory_limit.h"

namespace redfuser::cpu {
namespace {

// Takes from the weights of up to four taps what signed bytes hold.
uint32_t take_word(std::array<int64_t, 4>& weights) {
  uint32_t word = 0;
  for (size_t tap = 0; tap < weights.size(); ++tap) {
    const int64_t part = std::clamp<int64_t>(weights[tap], -128, 127);
    weights[tap] -= part;
    word |= static_cast<uint32_t>(part & 0xff) << (8 * tap);
  }
  return word;
}

}  // namespace

ByteWords::ByteWords(const Tensor& w, std::span<const int64_t> zeros, const TapGroups& groups,
                     bool saturates) {
  // They stay for later runs where they are constant, and so count for none.
  const MemoryLimit none(0);
  const bool is_signed = w.dtype() == DType::Int8;
  const auto* bytes = static_cast<const uint8_t*>(w.data());
  const int64_t filters = w.dims()[0], taps = groups.lines * groups.columns;
  for (int64_t f = 0; f < filters; ++f) {
    begins_.push_back(words_.size());
    const int64_t zero = zeros[zeros.size() == 1 ? 0 : static_cast<size_t>(f)];
    int64_t sum = 0;
    const auto push = [&](int64_t group, uint32_t word) {
      if (word == 0) return;
      words_.push_back(word);
      numbers_.push_back(static_cast<int32_t>(group));
    };
    for (int64_t group = 0; group < groups.count(); ++group) {
      std::array<int64_t, 4> weights{};
      const int64_t first = group % groups.across() * groups.size;
      for (int64_t i = first; i < std::min(first + groups.size, groups.columns); ++i) {
        const uint8_t byte = bytes[f * taps + group / groups.across() * groups.columns + i];
        const int64_t weight = is_signed ? static_cast<int8_t>(byte) : byte;
        weights[static_cast<size_t>(i - first)] = weight - zero;
        sum += weight - zero;
      }
      while (uint32_t word = take_word(weights)) {
        if (saturates) push(group, split_pairs(word));
        push(group, word);
      }
    }
    sums_.push_back(static_cast<int32_t>(static_cast<uint32_t>(sum)));
  }
  begins_.push_back(words_.size());
}

FilterWords ByteWords::filter(int64_t number) const {
  const auto f = static_cast<size_t>(number);
  const size_t begin = begins_[f], count = begins_[f + 1] - begin;
  return {std::span(words_).subspan(begin, count), std::span(numbers_).subspan(begin, count),
          sums_[f]};
}

}  // namespace redfuser::cpu
