// Chains of float32 that end in a quantisation to bytes, without its division. For y = 1 / s
// rounded to nearest, and q within a unit in the last place of v / s,
//
//   q + (v − q · s) · y,  by two fused operations, is v / s rounded to nearest
//
// (Markstein, Computation of elementary functions on the IBM RISC System/6000 processor, 1990).
// v · y is within 1.5 units, and one such step brings it within one.
#pragma once

#include "cpu/simd/byte_groups.h"
#include "cpu/simd/pointwise/chain_steps.h"

namespace redfuser::cpu::RF_ISA {
namespace {

constexpr int kBytesVectors = 4;  // of one vector of bytes

#if defined(__x86_64__) && RF_VECTOR_BYTES >= 32
// False where a value is infinite or not a number, or its quotient beyond int32: nothing is written
// then.
template <int NV>
RF_INLINE bool store_quantized(const QuantizedEnd& end, const Floats* v, char* to) {
  constexpr float kMost = 0x1p30f;
  const Floats y = end.reciprocal - Floats{}, s = -end.scale - Floats{};
  Ints r[NV];
  Floats most[2] = {}, nan[2] = {};
  each_vector<NV>([&](auto j) RF_INLINED {
    Floats q = v[j] * y;
    q = fused(fused(q, s, v[j]), y, q);
    q = fused(fused(q, s, v[j]), y, q);
    most[j % 2] = larger_magnitude(most[j % 2], q);
    nan[j % 2] += q;
    r[j] = nearest(q);
  });
  // 0 · nan is 0 of numbers.
  if (any_above(larger_magnitude(most[0], most[1]) + (nan[0] + nan[1]) * 0.0f, kMost)) return false;
#pragma GCC unroll 2
  for (int j = 0; j < NV; j += kBytesVectors) {
    const auto low = bounded_words(pack_words(r[j], r[j + 1]), end.zero, end.low, end.high);
    const auto high = bounded_words(pack_words(r[j + 2], r[j + 3]), end.zero, end.low, end.high);
    store_bytes(end.low < 0, low, high, reinterpret_cast<uint8_t*>(to) + j * kLanes);
  }
  return true;
}
#else
template <int NV>
RF_INLINE bool store_quantized(const QuantizedEnd&, const Vector<float>*, char*) {
  return false;
}
#endif

}  // namespace
}  // namespace redfuser::cpu::RF_ISA
