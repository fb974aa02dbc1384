// Fourier transforms of any length: X_k = Σ_t x_t exp(−2πi·k·t/n).
#pragma once

#include "base/memory_budget.h"
#include "cpu/simd/fourier.h"

namespace redfuser::cpu {

// The tables of the transforms of one length. Immutable, and thus shared by threads.
//
// Lengths whose prime factors are at most 7 take a pass per factor; others are a convolution with a
// chirp, of twice the length at least (Bluestein, "A linear filtering approach to the computation
// of discrete Fourier transform", 1970). A real signal of even length is transformed as a complex
// one of half the length. Phases are reduced modulo n as integers.
class FourierTables {
 public:
  // points >= 1. `real`: the signals have no imaginary parts.
  FourierTables(int64_t points, bool real);

  int64_t points() const { return points_; }
  // The bins that a transform yields: points / 2 + 1 or all.
  int64_t bins() const { return halved_ ? inner_ + 1 : points_; }
  // A buffer has sample t of lane l at t · sample_stride() · lanes + l: real parts alone, or with
  // the imaginary parts `lanes` further.
  int64_t sample_stride() const { return halved_ ? 1 : 2; }
  // The elements of each of two buffers.
  int64_t buffer_size(int64_t lanes) const;
  // The bins of the signals in `x`: bin k of lane l has its real part at 2k · lanes + l and its
  // imaginary part `lanes` further, in x or in `other`.
  const double* transform(const FourierKernels& kernels, double* x, double* other) const;

 private:
  using Table = ChargedVector<double>;

  static Table roots_of(int64_t count);
  void prepare_chirp();
  // All passes over `points`, by roots of a multiple of them; the result is in x.
  static void run_passes(const FourierKernels& kernels, int64_t points, const Table& roots,
                         double*& x, double*& other);
  void convolve(const FourierKernels& kernels, double*& x, double*& other) const;

  int64_t points_ = 1, inner_ = 1, padded_ = 0;  // padded_: of the convolution; 0 if there is none
  bool halved_ = false;
  Table roots_;                            // of `points_`
  Table chirp_, spectrum_, padded_roots_;  // of the convolution
};

}  // namespace redfuser::cpu
