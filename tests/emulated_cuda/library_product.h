// A call of the emulated product library.
#pragma once

#include <cstdint>

namespace redfuser::emulated_cuda {

struct Descriptor {
  int scale = 0;  // BlasType of alpha and beta
  int transposed_a = 0, transposed_b = 0, epilogue = 0;
  int mode_a = 0, mode_b = 0;
  const void *bias = nullptr, *scale_a = nullptr, *scale_b = nullptr;
};

// A matrix, stored by columns.
struct Layout {
  int type = 0;  // BlasType
  uint64_t rows = 0, columns = 0;
  int64_t leading = 0, batch_stride = 0;
  int batches = 1;
};

// d = alpha · a · b + beta · c, with sums in fp64. Results of 16 bits are rounded to fp32 first.
struct LibraryProduct {
  Descriptor descriptor;
  Layout a, b, c, d;
  const void *at_a, *at_b, *at_c;
  void* at_d;
  double alpha, beta;

  void run() const;

 private:
  double scale(const void* scales, int mode, int64_t line) const;
  double element(int batch, int64_t row, int64_t column, int64_t terms) const;
};

}  // namespace redfuser::emulated_cuda
