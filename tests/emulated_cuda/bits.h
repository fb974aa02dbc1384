// CUDA's functions of bits, for the host.
#pragma once

#include <bit>
#include <cstdint>

inline float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __int_as_float(int bits) { return std::bit_cast<float>(bits); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
inline double __longlong_as_double(long long bits) { return std::bit_cast<double>(bits); }

inline int __popc(unsigned x) { return std::popcount(x); }
inline int __popcll(unsigned long long x) { return std::popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<uint64_t>(high) << 32 | low) >> (shift & 31));
}
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  const uint64_t bytes = static_cast<uint64_t>(b) << 32 | a;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned pick = selector >> 4 * i & 0xf;
    unsigned byte = static_cast<unsigned>(bytes >> 8 * (pick & 7)) & 0xff;
    if ((pick & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
    result |= byte << 8 * i;
  }
  return result;
}
template <class A, class B, class Sum>
Sum dot_of_bytes(unsigned a, unsigned b, Sum sum) {
  for (int i = 0; i < 32; i += 8) {
    sum = static_cast<Sum>(static_cast<unsigned>(sum) +
                           static_cast<unsigned>(static_cast<int>(static_cast<A>(a >> i)) *
                                                 static_cast<int>(static_cast<B>(b >> i))));
  }
  return sum;
}
inline int __dp4a(int a, int b, int c) { return dot_of_bytes<int8_t, int8_t>(a, b, c); }
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  return dot_of_bytes<uint8_t, uint8_t>(a, b, c);
}
