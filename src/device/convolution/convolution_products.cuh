// The products of a convolution's operands by the tensor cores, over 32 bytes of the contracted
// axis: 16 elements of 16 bits or 8 floats. ldmatrix moves words of 32 bits, so that a lane has the
// same words of an operand for all types.
#pragma once

#include "device/product/tf32_parts.cuh"
#include "device/ptx.cuh"
#include "device/types.cuh"

// Left: 16 positions. take: from a lane's words. add: to the sums of all positions with 16 filters,
// of which `filters` are a lane's words; d[i][j] and d[i][j + 1] are those of group i of positions
// with 8 filters each.
template <typename T, int Parts>
struct ConvolutionProducts {
  struct Left {
    unsigned words[4];
  };

  static __device__ __forceinline__ void take(Left& a, const unsigned (&words)[4]) {
#pragma unroll
    for (int x = 0; x < 4; ++x) a.words[x] = words[x];
  }

  template <int Groups, int Columns>
  static __device__ __forceinline__ void add(float (&d)[Groups][Columns][4], int j,
                                             const Left (&a)[Groups],
                                             const unsigned (&filters)[4]) {
#pragma unroll
    for (int i = 0; i < Groups; ++i) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        multiply(T{}, d[i][j + h], a[i].words, filters[2 * h], filters[2 * h + 1]);
      }
    }
  }

 private:
  static __device__ __forceinline__ void multiply(half_t, float (&d)[4], const unsigned (&a)[4],
                                                  unsigned b0, unsigned b1) {
    ptx_mma_half(d, a, b0, b1);
  }
  static __device__ __forceinline__ void multiply(bfloat_t, float (&d)[4], const unsigned (&a)[4],
                                                  unsigned b0, unsigned b1) {
    ptx_mma_bfloat(d, a, b0, b1);
  }
};

template <int Parts>
struct ConvolutionProducts<float, Parts> {
  using Left = PartedOperand<Parts, 4>;

  static __device__ __forceinline__ void take(Left& a, const unsigned (&words)[4]) {
#pragma unroll
    for (int x = 0; x < 4; ++x) a.set(x, number(words[x]));
  }

  template <int Groups, int Columns>
  static __device__ __forceinline__ void add(float (&d)[Groups][Columns][4], int j,
                                             const Left (&a)[Groups],
                                             const unsigned (&filters)[4]) {
    PartedOperand<Parts, 2> b[2];
#pragma unroll
    for (int x = 0; x < 4; ++x) b[x / 2].set(x % 2, number(filters[x]));
    if constexpr (Parts == 1) {
      multiply<0, 0>(d, j, a, b);
      return;
    }
    // The tensor cores truncate their sums: those of 8 elements are added as floats.
    float sums[Groups][2][4];
#pragma unroll
    for (int i = 0; i < Groups; ++i) {
#pragma unroll
      for (int h = 0; h < 2; ++h) clear(sums[i][h]);
    }
    multiply<Parts - 1, 0>(sums, 0, a, b);
    multiply<0, Parts - 1>(sums, 0, a, b);
    multiply<0, 0>(sums, 0, a, b);
#pragma unroll
    for (int i = 0; i < Groups; ++i) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
#pragma unroll
        for (int x = 0; x < 4; ++x) d[i][j + h][x] += sums[i][h][x];
      }
    }
  }

 private:
  static __device__ __forceinline__ float number(unsigned word) {
    const float x = __uint_as_float(word);
    return Parts == 1 ? ptx_round_to_tf32(x) : x;
  }

  // Adds the products of one part of the positions and one of the filters.
  template <int PartA, int PartB, int Groups, int Columns>
  static __device__ __forceinline__ void multiply(float (&d)[Groups][Columns][4], int j,
                                                  const Left (&a)[Groups],
                                                  const PartedOperand<Parts, 2> (&b)[2]) {
#pragma unroll
    for (int i = 0; i < Groups; ++i) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        ptx_mma_tf32(d[i][j + h], a[i].part[PartA], b[h].part[PartB][0], b[h].part[PartB][1]);
      }
    }
  }
};
