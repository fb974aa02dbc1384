// The second quantisation of IntegerResidual, by float32 where that decides, else by float64. With
// M = 255 · (|first| + |second|) + |offset|, the sum by float32 is within 2^-22 · M of the exact
// one: it has two rounded constants of a product, two products and two sums, none of them above M.
#pragma once

#include "cpu/simd/byte_groups.h"
#include "cpu/simd/integers/integer_gemm.h"
#include "cpu/simd/lanes.h"

namespace redfuser::cpu::RF_ISA {
namespace {

constexpr double kWhole = 6755399441055744.0;  // 1.5 · 2^52

// The sum with 1.5 · 2^52 is rounded to a whole number, which its lowest bits hold.
RF_INLINE uint32_t rounded(double x) {
  return static_cast<uint32_t>(__builtin_bit_cast(uint64_t, x + kWhole));
}

// One row: bytes of codes of the first quantisation, `q`, and `bytes` beside them.
RF_INLINE void add_residual(const IntegerResidual& g, int64_t count, const int32_t* q,
                            const uint8_t* bytes, uint8_t* out) {
  const double low = g.low - g.zero, high = g.high - g.zero;
  const auto zero = static_cast<uint32_t>(static_cast<int32_t>(g.zero));
  const int flip = g.is_signed ? 128 : 0;
  for (int64_t j = 0; j < count; ++j) {
    const int r = (bytes[j] ^ flip) - flip;
    double x = q[j] * g.first + r * g.second + g.offset;
    x = low > x ? low : x;
    x = high < x ? high : x;
    out[j] = static_cast<uint8_t>(rounded(x) + zero);
  }
}

#if defined(__x86_64__)
class ResidualGroups {
 public:
  explicit ResidualGroups(const IntegerResidual& g)
      : exact_(g),
        first_(static_cast<float>(g.first)),
        second_(static_cast<float>(g.second)),
        offset_(static_cast<float>(g.offset)),
        most_(static_cast<float>(0.5 - 0x1p-21 * magnitude_of(g))),
        zero_(static_cast<int32_t>(g.zero)),
        low_(static_cast<int32_t>(g.low)),
        high_(static_cast<int32_t>(g.high)) {}

  static bool takes(const IntegerResidual& g) {
    const auto normal = [](double x) { return __builtin_fabs(x) >= 0x1p-100; };
    return magnitude_of(g) <= 0x1p14 && normal(g.first) && normal(g.second);
  }

  // Codes of a group, and the bytes beside them.
  RF_INLINE void run(const Ints* q, const uint8_t* bytes, uint8_t* out) const {
    exact_.is_signed ? run_as<int8_t>(q, bytes, out) : run_as<uint8_t>(q, bytes, out);
  }

 private:
  static double magnitude_of(const IntegerResidual& g) {
    return 255 * (__builtin_fabs(g.first) + __builtin_fabs(g.second)) + __builtin_fabs(g.offset);
  }

  template <class Byte>
  RF_INLINE void run_as(const Ints* q, const uint8_t* bytes, uint8_t* out) const {
    const char* at = reinterpret_cast<const char*>(bytes);
    Floats most{};
    Ints r[4];
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
      const Floats beside = float_lanes<Byte>(load_lanes<Byte>(at + v * kLanes, 0));
      const Floats t =
          __builtin_convertvector(q[v], Floats) * first_ + (beside * second_ + offset_);
      r[v] = nearest(t);
      most = larger_magnitude(most, beyond(t, r[v]));
    }
    if (any_above(most, most_)) [[unlikely]]
      return run_exactly(q, bytes, out);
    const auto first = bounded_words(pack_words(r[0], r[1]), zero_, low_, high_);
    const auto last = bounded_words(pack_words(r[2], r[3]), zero_, low_, high_);
    store_bytes(low_ < 0, first, last, out);
  }

  __attribute__((noinline)) void run_exactly(const Ints* q, const uint8_t* bytes,
                                             uint8_t* out) const {
    int32_t codes[kGroup];
    __builtin_memcpy(codes, q, sizeof(codes));
    add_residual(exact_, kGroup, codes, bytes, out);
  }

  const IntegerResidual exact_;
  float first_, second_, offset_, most_;  // the most that a float32 may be from a whole number
  int32_t zero_, low_, high_;
};
#endif

}  // namespace
}  // namespace redfuser::cpu::RF_ISA
