// Products of 8-bit integers with sums in int32, which wrap around.
//
//   C[i, j] = Σ_k (a[i, k] − p[i]) · (b[k, j] − q[j])
//           = Σ_k a·b − p[i] · (Σ_k b − K·q[j]) − q[j] · Σ_k a
//
// with the sums of a over its rows and of b over its columns made while the factors are packed. The
// dot products of the hardware take one unsigned and one signed factor. A factor of the other kind
// is moved by 128 together with its zero point, (a + 128) − (p + 128) = a − p: a flip of its
// highest bit. All arithmetic is modulo 2^32, so no order of sums changes the result.
#pragma once

#include "cpu/simd/kernel_table.h"

namespace redfuser::cpu {

// A factor to be packed: `count` rows of the left or columns of the right factor, of `depth`
// elements. The matrix is of int8 or uint8.
struct IntegerPackArgs {
  MatrixView matrix;
  int64_t count = 0, depth = 0;
  int64_t offset = 0;       // added to the elements: 0, or ±128, which flips their highest bit
  void* out = nullptr;      // aligned to 64 bytes
  int32_t* sums = nullptr;  // of the moved elements of each row or column; may be null
};

// What split_pairs took from the groups of a signed factor: of each row of the left factor, or
// panel of the right one, the groups and their words, one for a row, all columns of a panel.
struct IntegerRests {
  const int64_t* begins =
      nullptr;  // of every row or panel, and the end; null where nothing was split
  const int32_t* groups = nullptr;
  const uint32_t* words = nullptr;
};

struct IntegerMultiplyArgs {
  int64_t m = 0, n = 0;     // n at most a multiple of the panel's columns; C is written in panels
  int64_t depth = 0;        // of the packed factors
  const void* a = nullptr;  // rows `a_stride` bytes apart
  int64_t a_stride = 0;
  const void* b = nullptr;  // panels
  int32_t* c = nullptr;     // row-major
  int64_t c_stride = 0;
  bool left_signed = false;  // the left factor is the signed one
  // Null where b has panels. Otherwise `interleave` made b: column j of group g of the depth is the
  // word of 4 bytes at b + group_offsets[g] + 4 · j. The groups of depth_multiple elements are
  // equally far apart, everywhere as far. A panel's columns beyond the last may be read.
  const int64_t* group_offsets = nullptr;
  IntegerRests rests;               // of kernels of byte_pairs
  const int32_t* starts = nullptr;  // added to the sums of each row; may be null
};

// Sums of a convolution with the positions as the left factor, in place, and the filters as the
// right one: out[f, p] = starts[f] + Σ_g image(p)[g] · panel[g, f], where the word of group g for
// position p = line · columns + column is at image + offsets[g] + 4 · (line · line_step + column).
// The image is unsigned, the panel signed.
struct IntegerPositionsArgs {
  int64_t lines = 0, columns = 0, line_step = 0;
  int64_t groups = 0;
  const int64_t* offsets = nullptr;
  const void* image = nullptr;
  const void* panel = nullptr;      // of pack_columns
  const int32_t* starts = nullptr;  // of all columns of the panel
  int64_t filters = 0;              // at most the panel's columns
  int32_t* tile =
      nullptr;  // scratch memory: lines · columns + kTileSlack rows of a panel's columns
  int32_t* out = nullptr;
  int64_t out_stride = 0;  // between filters
};
inline constexpr int64_t kTileSlack = 16;

// The unsigned elements of up to group() channels side by side in words of 4 bytes: word j has
// channel 0's element in[j · step], then channel 1's at in[channel_stride + j · step], ... and 0
// for channels beyond `channels`.
struct IntegerInterleaveArgs {
  const uint8_t* in = nullptr;
  int64_t channel_stride = 0, channels = 0, step = 1, count = 0;
  uint8_t flip = 0;  // applied to all elements of the channels by exclusive or
  void* out = nullptr;
  int32_t* sums = nullptr;  // where present, += the unsigned elements of every j
};

// A second quantisation, of the codes q of a first one and of bytes r beside them: saturate(round(q
// · first + r · second + offset) + zero) between `low` and `high`, ties to even. All are finite.
struct IntegerResidual {
  const uint8_t* bytes = nullptr;
  int64_t stride = 0;      // between rows
  bool is_signed = false;  // the bytes are of int8
  double first = 1, second = 1, offset = 0;
  double zero = 0, low = 0, high = 255;
};

// out[i, j] = saturate(round(c[i, j] · scale + offset) + zero) as 8-bit integers between
// `low` and `high`, or as int32, by float64, ties to even. NaN rounds to 0. The numbers of row i
// are scales[i · scale_step], and so on. Of int32, `out` may be `c`.
struct IntegerQuantizeArgs {
  int64_t rows = 1, count = 0;  // elements of a row
  const int32_t* c = nullptr;
  int64_t c_stride = 0;
  const double *scales = nullptr, *offsets = nullptr;
  int64_t scale_step = 1, offset_step = 1;
  double zero = 0, low = 0, high = 255;
  const IntegerResidual* residual = nullptr;  // what follows, of bytes only
  void* out = nullptr;
  int64_t out_stride = 0;
};

// out[i, j] = the activation of c[i, j] · scale + offset, in float32: the sum as a float, the
// product and the sum each round. The numbers of row i are scales[i · scale_step], and so on.
struct IntegerScaleArgs {
  int64_t rows = 1, count = 0;  // elements of a row
  const int32_t* c = nullptr;
  int64_t c_stride = 0;
  const float *scales = nullptr, *offsets = nullptr;  // without offsets nothing is added
  int64_t scale_step = 0, offset_step = 0;
  Activation each;
  const float* residual = nullptr;  // added to each result; its rows are out_stride apart
  float* out = nullptr;
  int64_t out_stride = 0;
};

// The kernels of one kind of dot product. Packed rows of the left factor are contiguous. The right
// factor is packed in panels of `columns`, each of bytes [depth / group][columns][group], where a
// group of a row has 4 bytes. Both are padded with zeros to a depth that `depth_multiple` divides,
// the panels also to whole columns.
struct IntegerKernels {
  const char* name;
  bool (*runs)();      // on this machine
  int64_t left_bytes;  // of a packed element: 1; or 2, which keeps its sign and needs no offset
  int64_t depth_multiple, columns;
  void (*pack_rows)(const IntegerPackArgs&);
  void (*pack_columns)(const IntegerPackArgs&);
  void (*multiply)(const IntegerMultiplyArgs&);
  void (*quantize)(const IntegerQuantizeArgs&);      // to bytes
  void (*interleave)(const IntegerInterleaveArgs&);  // null: factors are multiplied as panels only
  void (*positions)(const IntegerPositionsArgs&);    // null: positions are the right factor only

  int64_t packed_depth(int64_t depth) const {
    return (depth + depth_multiple - 1) / depth_multiple * depth_multiple;
  }
  int64_t packed_columns(int64_t count) const { return (count + columns - 1) / columns * columns; }
  int64_t group() const { return 4 / left_bytes; }  // elements
  // To be added to the elements of a factor, signed or not, that is to be signed or not.
  int64_t left_offset(bool is_signed, bool to_be_signed) const {
    return left_bytes == 2 ? 0 : right_offset(is_signed, to_be_signed);
  }
  int64_t right_offset(bool is_signed, bool to_be_signed) const {
    return is_signed == to_be_signed ? 0 : to_be_signed ? -128 : 128;
  }
  // Of a packed row of the left factor, and of packed columns of the right one.
  int64_t row_bytes(int64_t depth) const { return packed_depth(depth) * left_bytes; }
  int64_t panel_bytes(int64_t count, int64_t depth) const {
    return packed_columns(count) * packed_depth(depth);
  }
};

// out[i, j] = c[i, j] − row_zeros[i] · column_terms[j] − row_sums[i] · column_zeros[j]; a pair of
// null pointers is a term of zero. column_terms[j] is Σ_k b − K·q[j]. `out` may be `c`, if their
// elements are of equal size. Floats are rounded to nearest.
struct IntegerFinishArgs {
  int64_t rows = 0, columns = 0;
  const int32_t* c = nullptr;
  int64_t c_stride = 0;
  const int32_t *row_zeros = nullptr, *column_terms = nullptr;
  const int32_t *row_sums = nullptr, *column_zeros = nullptr;
  void* out = nullptr;
  int64_t out_stride = 0;
};

// The best of this machine.
inline const IntegerKernels& integer_kernels() { return *kernels().integer[0]; }

}  // namespace redfuser::cpu
