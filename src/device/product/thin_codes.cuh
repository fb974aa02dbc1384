// Elements of wide matrices that are stored in few bits: (code − zero) · scale, rounded to the type
// that is multiplied. A block of the contracted axis has one scale, and one zero point.
//
// Codes are made floats without a conversion: a code in the low bits of a number whose last bit is
// worth 1 is that number plus the code, and the difference to the number plus the zero point is
// exact.
#pragma once

#include "device/ptx.cuh"
#include "device/ptx_pairs.cuh"
#include "device/types.cuh"

// The elements are floats of the matrix' own.
struct ThinElements {
  static constexpr int Bits = 0, Block = 0;
  static constexpr bool Zeros = false;
};

// Bits: 4 or 8, of a code. Block: contracted elements of a scale. Zeros: each block has a zero
// point, else all have the same.
template <int Bits_, int Block_, bool Zeros_>
struct ThinCode {
  static constexpr int Bits = Bits_, Block = Block_;
  static constexpr bool Zeros = Zeros_;
  static_assert(Bits == 4 || Bits == 8);
};

// Eight lines and the contracted elements of a step are 512 bytes: lane 4 · l + q of a warp has the
// 16 bytes of line l and quarter q of the elements. Element e of eight 4-bit codes in a word is at
// bit 4 · (e / 2) + 16 · (e % 2). Scales and zero points are [lines / 8][blocks][8]. Lines are
// padded to eight, and the contracted axis to whole steps.
template <typename T>
struct ThinCodedMatrix {
  const uint4* codes;
  const T* scales;
  const unsigned char* zeros;
  int zero;  // of all blocks, if these have none of their own
  int steps, blocks;
};

// The numbers that make elements of a block's codes: two equal scales, and the addend of a number
// with a code in its low bits, or in the four bits above them.
struct ThinFactors {
  unsigned scale, low, high;
};

template <typename T, int Bits>
struct ThinDecoder;

template <>
struct ThinDecoder<half_t, 4> {
  // Pairs of −(1024 + zero) and of −(64 + zero).
  static __device__ __forceinline__ ThinFactors factors(half_t scale, unsigned zero) {
    return {scale.bits * 0x10001u, (0xe400u + zero) * 0x10001u, (0xd400u + 16 * zero) * 0x10001u};
  }
  // Elements 8 · piece and on.
  static __device__ __forceinline__ void decode(unsigned (&to)[4], const unsigned (&codes)[4],
                                                int piece, const ThinFactors& f) {
    constexpr unsigned kOne = 0x64006400, kSixteenth = 0x2c002c00;
    unsigned word = codes[piece];
#pragma unroll
    for (int i = 0; i < 4; i += 2, word >>= 8) {
      const unsigned low = ptx_add_halves((word & 0x000f000f) | kOne, f.low);
      const unsigned high = ptx_fma_halves((word & 0x00f000f0) | kOne, kSixteenth, f.high);
      to[i] = ptx_multiply_halves(low, f.scale);
      to[i + 1] = ptx_multiply_halves(high, f.scale);
    }
  }
};

template <>
struct ThinDecoder<half_t, 8> {
  static __device__ __forceinline__ ThinFactors factors(half_t scale, unsigned zero) {
    return {scale.bits * 0x10001u, (0xe400u + zero) * 0x10001u, 0};
  }
  static __device__ __forceinline__ void decode(unsigned (&to)[4], const unsigned (&codes)[4],
                                                int piece, const ThinFactors& f) {
    constexpr unsigned kOne = 0x64;  // the high byte of 1024
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const unsigned word = codes[2 * piece + i / 2];
      const unsigned pair = __byte_perm(word, kOne, i % 2 == 0 ? 0x4140 : 0x4342);
      to[i] = ptx_multiply_halves(ptx_add_halves(pair, f.low), f.scale);
    }
  }
};

template <>
struct ThinDecoder<bfloat_t, 4> {
  // A pair of −(128 + zero).
  static __device__ __forceinline__ ThinFactors factors(bfloat_t scale, unsigned zero) {
    return {scale.bits * 0x10001u, (0xc300u + zero) * 0x10001u, 0};
  }
  static __device__ __forceinline__ void decode(unsigned (&to)[4], const unsigned (&codes)[4],
                                                int piece, const ThinFactors& f) {
    constexpr unsigned kOne = 0x3f803f80, kNegativeZero = 0x80008000;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const unsigned pair = (codes[piece] >> (4 * i) & 0x000f000f) | 0x43004300;
      to[i] = ptx_fma_bfloats(ptx_fma_bfloats(pair, kOne, f.low), f.scale, kNegativeZero);
    }
  }
};

// Code `code` of a number 2²³ as a float, less 2²³ + zero: exact.
__device__ __forceinline__ float thin_difference(unsigned code, const ThinFactors& f) {
  return __uint_as_float(0x4b000000u | code) - __uint_as_float(f.low);
}

template <>
struct ThinDecoder<bfloat_t, 8> {
  static __device__ __forceinline__ ThinFactors factors(bfloat_t scale, unsigned zero) {
    return {static_cast<unsigned>(scale.bits) << 16, 0x4b000000u + zero, 0};
  }
  static __device__ __forceinline__ void decode(unsigned (&to)[4], const unsigned (&codes)[4],
                                                int piece, const ThinFactors& f) {
    const float scale = __uint_as_float(f.scale);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const unsigned pair = codes[2 * piece + i / 2] >> (16 * (i % 2));
      to[i] = ptx_pack_bfloat(thin_difference(pair & 0xff, f) * scale,
                              thin_difference(pair >> 8 & 0xff, f) * scale);
    }
  }
};

template <int Bits>
struct ThinDecoder<float, Bits> {
  static __device__ __forceinline__ ThinFactors factors(float scale, unsigned zero) {
    return {__float_as_uint(scale), 0x4b000000u + zero, 0};
  }
  // Elements 4 · piece and on.
  static __device__ __forceinline__ void decode(unsigned (&to)[4], const unsigned (&codes)[4],
                                                int piece, const ThinFactors& f) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      unsigned code;
      if constexpr (Bits == 8) {
        code = codes[piece] >> (8 * i) & 0xff;
      } else {
        code = codes[piece / 2] >> (8 * (piece % 2) + 4 * (i / 2) + 16 * (i % 2)) & 0xf;
      }
      to[i] = __float_as_uint(thin_difference(code, f) * __uint_as_float(f.scale));
    }
  }
};
