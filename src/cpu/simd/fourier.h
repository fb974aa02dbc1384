// The passes of Fourier transforms of several signals at once, one signal in each lane.
//
// A buffer has the points one after the other, each as the real parts of all lanes and then their
// imaginary parts. Tables of roots and factors hold complex numbers as a cosine and a sine, or a
// real and an imaginary part, in turn; `roots` has exp(2πi·k / count) for 0 <= k < count. Buffers
// of a pass do not overlap.
#pragma once

#include <cstdint>

namespace redfuser::cpu {

// One pass of a forward transform (Σ_t x_t exp(−2πi·k·t/points)) by the self-sorting method of
// Stockham, which multiplies the number of transformed points, `done`, by the radix: first 1, last
// points / radix. `count` is a multiple of `points`.
struct FourierPassArgs {
  int64_t points = 0, radix = 0, done = 1;
  const double* roots = nullptr;
  int64_t count = 0;
  const double* in = nullptr;
  double* out = nullptr;
};

// out_t = factor_t · in_t, where `in` or `out` has real and imaginary parts exchanged: a forward
// transform between such exchanges is the backward one.
struct FourierFactorArgs {
  int64_t points = 0;
  const double* factors = nullptr;
  const double* in = nullptr;
  double* out = nullptr;
  bool exchange_in = false, exchange_out = false;
};

// The first half + 1 bins of a real signal of 2·half samples, of the transform of the `half` points
// whose real and imaginary parts are the even and the odd samples. `roots` are of 2·half.
struct FourierRealArgs {
  int64_t half = 0;
  const double* roots = nullptr;
  const double* in = nullptr;
  double* out = nullptr;
};

inline constexpr int64_t kFourierRadices[] = {4, 2, 3, 5, 7};

struct FourierKernels {
  int64_t lanes;
  void (*pass)(const FourierPassArgs& args);
  void (*multiply)(const FourierFactorArgs& args);
  void (*untangle)(const FourierRealArgs& args);
};

}  // namespace redfuser::cpu
