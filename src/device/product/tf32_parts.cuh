// Floats as sums of numbers that the TF32 tensor cores multiply exactly. A float is the sum of two
// such numbers, and the product of the second ones is left out (3xTF32: Ootomo and Yokota,
// "Recovering single precision accuracy from Tensor Cores", 2022):
//
//     a · b ≈ a₁ b₁ + (a₁ b₂ + a₂ b₁)      a₁ = a rounded to TF32, a₂ = a - a₁
//
// A 16-bit float is one such number. Products of infinite floats in two parts are NaN.
#pragma once

// Numbers in `Parts` parts, as operands.
template <int Parts, int N>
struct PartedOperand {
  unsigned part[Parts][N];

  __device__ __forceinline__ void set(int i, float x) {
    constexpr unsigned kHalf = 1u << 12, kKept = ~((1u << 13) - 1);
    part[0][i] = __float_as_uint(x);
    if (Parts == 1) return;
    part[0][i] = (part[0][i] + kHalf) & kKept;
    part[Parts - 1][i] = __float_as_uint(x - __uint_as_float(part[0][i]));
  }
};

__device__ __forceinline__ void clear(float (&c)[4]) {
#pragma unroll
  for (int x = 0; x < 4; ++x) c[x] = 0;
}
