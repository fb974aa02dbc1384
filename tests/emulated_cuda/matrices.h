// Matrix operations of a warp: loads of 8x8 matrices, and products of 16 rows by 8 columns.
#pragma once

#include "emulated_cuda/copies.h"
#include "emulated_cuda/formats.h"
#include "emulated_cuda/language.h"

namespace emulated {

struct MatrixRows {
  unsigned address;
  unsigned* to;
};
// Four 8x8 matrices of 16-bit elements, whose rows are at the addresses of 8 lanes each.
template <bool Transposed>
void load_matrices(void** operands, int) {
  for (int lane = 0; lane < 32; ++lane) {
    for (int m = 0; m < 4; ++m) {
      const auto element = [&](int row, int column) {
        const unsigned address = static_cast<MatrixRows*>(operands[8 * m + row])->address;
        if (address % 16 != 0) std::abort();
        return static_cast<unsigned>(shared<unsigned short>(address + 2 * column));
      };
      const int one = lane / 4, two = lane % 4 * 2;
      static_cast<MatrixRows*>(operands[lane])->to[m] =
          Transposed ? element(two, one) | element(two + 1, one) << 16
                     : element(one, two) | element(one, two + 1) << 16;
    }
  }
}

struct MmaOperands {
  void* c;
  const unsigned* a;
  unsigned b[2];
};
inline const MmaOperands& of_lane(void** operands, int lane) {
  return *static_cast<MmaOperands*>(operands[lane]);
}
// c += a · b, of 16 rows, 8 columns and K terms.
template <class Sum, int K, class Left, class Right>
void multiply(void** operands, Left left, Right right) {
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 8; ++column) {
      Sum* c = static_cast<Sum*>(of_lane(operands, row % 8 * 4 + column / 2).c);
      Sum& sum = c[row / 8 * 2 + column % 2];
      for (int k = 0; k < K; ++k) {
        if constexpr (std::is_same_v<Sum, int>) {
          sum = static_cast<int>(static_cast<unsigned>(sum) +
                                 static_cast<unsigned>(left(row, k) * right(k, column)));
        } else {
          sum += left(row, k) * right(k, column);
        }
      }
    }
  }
}
template <class Format>
void mma_16(void** operands, int) {
  multiply<float, 16>(
      operands,
      [&](int row, int k) {
        const MmaOperands& from = of_lane(operands, row % 8 * 4 + k % 8 / 2);
        return part<Format>(from.a[k / 8 * 2 + row / 8], k % 2);
      },
      [&](int k, int column) {
        const MmaOperands& from = of_lane(operands, column * 4 + k % 8 / 2);
        return part<Format>(from.b[k / 8], k % 2);
      });
}
inline float tf32(unsigned bits) { return std::bit_cast<float>(bits & 0xffffe000); }
inline void mma_tf32(void** operands, int) {
  multiply<float, 8>(
      operands,
      [&](int row, int k) {
        return tf32(of_lane(operands, row % 8 * 4 + k % 4).a[k / 4 * 2 + row / 8]);
      },
      [&](int k, int column) { return tf32(of_lane(operands, column * 4 + k % 4).b[k / 4]); });
}
template <class A, class B>
void mma_bytes(void** operands, int) {
  multiply<int, 32>(
      operands,
      [&](int row, int k) {
        const MmaOperands& from = of_lane(operands, row % 8 * 4 + k % 16 / 4);
        return static_cast<int>(static_cast<A>(from.a[k / 16 * 2 + row / 8] >> k % 4 * 8));
      },
      [&](int k, int column) {
        const MmaOperands& from = of_lane(operands, column * 4 + k % 16 / 4);
        return static_cast<int>(static_cast<B>(from.b[k / 16] >> k % 4 * 8));
      });
}
inline void run_mma(void* c, const unsigned* a, unsigned b0, unsigned b1, Act act) {
  MmaOperands own{c, a, {b0, b1}};
  host.with_warp(0xffffffff, &own, act);
}

}  // namespace emulated
