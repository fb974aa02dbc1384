// The vector kernels of the CPU executor. Each instruction set has its own table of the same
// functions, compiled from the same sources; `kernels()` is the table of this machine.
//
// Every elementwise kernel works on `rows` x `cols` elements. The output is row-major with
// `out_stride` elements between rows and may be the same memory as an operand of equal element
// size (same rows, same columns), but may not overlap it otherwise.
#pragma once

#include <cmath>
#include <cstdint>

namespace redfuser::cpu {

// The element class of values in computation: F32 for 16-bit floats too, U64 for uint64, I32 for
// int32 and integers of fewer bits, I64 for all others (elem_of). Sums, differences and products of
// I32 wrap around, which a type's wrapping to its own bits does not notice.
enum class Elem : uint8_t { F32, F64, I64, Bool, U64, I32 };
inline constexpr int kElems = 6;

// An operand of a two-dimensional kernel: row r starts at data + offset(r), where offset(r) is
// offsets[r] if there is a table and r * stride otherwise, in elements. An operand is either a
// vector (one element per column) or a scalar (one element per row), as the kernel's mode says.
struct Operand {
  const void* data = nullptr;
  int64_t stride = 0;
  const int64_t* offsets = nullptr;
};

// The scalar operations of ir/scalars/operations.def, and those that only the CPU has.
enum class UnaryOp : uint8_t {
#define RF_UNARY(NAME, REFERENCE, ...) NAME,
#define RF_UNARY_BITS RF_UNARY
#include "ir/scalars/operations.def"
  RoundHalf,
  RoundBFloat,  // to the nearest float16 or bfloat16 and back
  WrapI8,
  WrapI16,
  WrapU8,
  WrapU16,
  WrapU32,
  WrapI4,
  WrapU4,
  WrapI2,
  WrapU2,
  Count
};
inline constexpr int kUnaryOps = static_cast<int>(UnaryOp::Count);

enum class BinaryOp : uint8_t {
#define RF_BINARY(NAME, REFERENCE, ...) NAME,
#include "ir/scalars/operations.def"
  ExpSub,  // exp(a - b)
  Count
};
inline constexpr int kBinaryOps = static_cast<int>(BinaryOp::Count);

// Which operands of a binary kernel are vectors (V) and which scalars (S).
enum class Mode : uint8_t { VV, VS, SV };
inline constexpr int kModes = 3;

enum class ReduceOp : uint8_t { Sum, Prod, Max, Min };
inline constexpr int kReduceOps = 4;

// Element types in memory, numbered as DType is.
inline constexpr int kStorageTypes = 27;

// A chain of operations, each on the result of the one before: v = v ⊕ operand, or operand ⊕ v
// where the operation is reversed. The result stays in registers between them.
enum class ChainOp : uint8_t {
  Neg,
  Abs,
  Square,
  Round,  // ties to even
  Exp,    // of float32, as the kernel of the operation computes it
  Erf,    // likewise
  Tanh,
  Add,
  Sub,
  SubFrom,
  Mul,
  Div,
  DivInto,
  Max,
  MaxOf,
  Min,
  MinOf
};
inline constexpr bool is_unary(ChainOp op) { return op <= ChainOp::Tanh; }
inline constexpr bool is_function(ChainOp op) { return op >= ChainOp::Exp && op <= ChainOp::Tanh; }
struct ChainLink {
  ChainOp op;
  bool vector;      // else a scalar
  Operand operand;  // none of a unary operation
};
// The elements that a chain of float32 begins and ends with in memory. Integers are the nearest
// ones towards zero, modulo 2^bits; a float that int32 has not gives its least one.
enum class ChainType : uint8_t { Own, UInt8, Int8, Int32, Float16, BFloat16 };
inline constexpr int kMostLinks = 12;
// What the results of each row are folded into, at its row's number; null where it is not wanted.
// A NaN, once in, stays.
struct ChainFolds {
  float *greatest = nullptr, *least = nullptr, *sum = nullptr;
  bool any() const { return greatest != nullptr || least != nullptr || sum != nullptr; }
};
struct ChainArgs {
  int64_t rows = 0, cols = 0;
  void* out = nullptr;  // null where only folds are wanted
  int64_t out_stride = 0;
  Operand first;  // a vector
  ChainType first_type = ChainType::Own, out_type = ChainType::Own;
  const ChainLink* links = nullptr;
  int count = 0;     // of links, at most kMostLinks
  ChainFolds folds;  // of float32 that are stored as such, if at all
};
using ChainFn = void (*)(const ChainArgs& args);

using UnaryFn = void (*)(int64_t rows, int64_t cols, void* out, int64_t out_stride, Operand a);
using BinaryFn = void (*)(int64_t rows, int64_t cols, void* out, int64_t out_stride, Operand a,
                          Operand b);
// out = condition ? a : b, where the condition is a Bool vector.
using SelectFn = void (*)(int64_t rows, int64_t cols, void* out, int64_t out_stride,
                          Operand condition, Operand a, Operand b);
// accumulator[r] = accumulator[r] ⊕ (⊕ over the columns of a). Max and Min keep NaN.
using ReduceFn = void (*)(int64_t rows, int64_t cols, void* accumulator, Operand a);
// totals[c] = totals[c] ⊕ x[c], and out[c] is the total after x[c] or, `exclusive`, before. `out`
// may be `x`.
using RunningFn = void (*)(int64_t count, const float* x, bool exclusive, double* totals,
                           float* out);
// Converts `count` contiguous elements.
using ConvertFn = void (*)(int64_t count, void* out, const void* in);

// out[r, c] = from[row(r) + column(c)], where row(r) is row_offsets[r] if there is a table, else r
// · row_stride, and columns likewise; `out` overlaps no element of `from`. `size` elements of
// `from` may be read, with those that no result needs.
struct MoveArgs {
  int64_t rows = 0, columns = 0;
  const void* from = nullptr;
  int64_t size = 0;
  int64_t row_stride = 0, column_stride = 0;
  const int64_t* row_offsets = nullptr;
  const int64_t* column_offsets = nullptr;
  void* out = nullptr;
  int64_t out_stride = 0;
};
using MoveFn = void (*)(const MoveArgs& args);

// out = max(min(x < 0 ? x + size : x, last), 0) of positions x, a vector.
struct PositionBounds {
  int64_t size, last;
};
using PositionFn = void (*)(int64_t rows, int64_t cols, int64_t* out, int64_t out_stride, Operand a,
                            const PositionBounds& bounds);

// out[r, c] = from[row(r) + positions[r, c] · scale + c · column_stride], where row(r) is
// row_offsets[r] if there is a table, else r · row_stride; all of them elements of `from`.
struct GatherArgs {
  int64_t rows = 0, columns = 0;
  const void* from = nullptr;
  Operand positions;  // a vector
  int64_t scale = 1, column_stride = 0, row_stride = 0;
  const int64_t* row_offsets = nullptr;
  void* out = nullptr;
  int64_t out_stride = 0;
};
using GatherFn = void (*)(const GatherArgs& args);

// The first of the elements [begin, count) of x that is larger, or smaller, than the element at
// `bound`, or NaN where that is a number; `count` without one.
using RankFn = int64_t (*)(const void* x, int64_t begin, int64_t count, const void* bound,
                           bool largest);

// C[m, n] (+)= Σ_k A[m, k] · B[k, n]. Element (i, j) of A is at a.data + row(i) + column(j), where
// row(i) is row_offsets[i] if there is a table, else i * row_stride; columns likewise.
struct MatrixView {
  const void* data = nullptr;
  uint8_t storage = 0;  // a DType: float32, float64, float16, bfloat16, a float of 8 bits
  int64_t row_stride = 0, column_stride = 0;
  const int64_t* row_offsets = nullptr;
  const int64_t* column_offsets = nullptr;
  const float* code_values = nullptr;  // of 256 codes, for floats of 8 bits
};
struct GemmArgs {
  int64_t m = 0, n = 0, k = 0;
  MatrixView a, b;
  const void* panels = nullptr;  // where present, B as PackFn packs it; b has no meaning then
  void* c = nullptr;             // row-major
  int64_t c_stride = 0;
  bool c_padded = false;    // columns may be written up to the next multiple of 16
  bool accumulate = false;  // C += rather than C =
  // kGemmScratchBytes, aligned to 64 bytes. May be null for panels and an A of unit column stride
  // and the product's type.
  void* scratch = nullptr;
};
// Products of at most so many rows of A read a B of the product's type in place, once.
inline constexpr int64_t kRowsInPlace = 4;
inline constexpr int64_t kGemmScratchBytes = int64_t{1536} * 1024;
using GemmFn = void (*)(const GemmArgs& args);
// Packs B[k, n] once for any number of products. `out` has k times the next multiple of 16 of n
// elements of the product's type.
using PackFn = void (*)(const MatrixView& b, int64_t k, int64_t n, void* out);

// What becomes of s, a sum or, where `adds`, a sum plus its element of a residual: t = s · scale +
// shift where `affine`, else s; of t the greater of it and `low`, then the lesser of that and
// `high`, or where `logistic` (and `affine`, in float32 only) 1 / (1 + e^-t); and that, or where
// `gates` (and `affine`) its product with s. NaN stays.
struct Activation {
  bool any = false, adds = false, affine = false, gates = false, logistic = false;
  double scale = 1, shift = 0;
  double low = -HUGE_VAL, high = HUGE_VAL;
};

// Taps of one column whose offsets are a line of a plane apart, in the order of their lines.
struct TapRun {
  int64_t offset;       // of the first
  int64_t first, step;  // tap i of them is tap first + i · step
  int count;            // at most kMostRun
};
inline constexpr int kMostRun = 3;

// Depthwise convolution of one channel: for each of its filters f, out[f, d, r, c] = bias[f] + Σ_t
// weights[f, t] · padded[d · slice + r · pitch + c + offsets[t]], where a slice is all planes of
// one depth. The input is copied into `padded` first: its element (d, h, c), with `pad` added, to
// [d][h mod stride[1]][c mod stride[2]][h / stride[1]][c / stride[2]], where a plane has `rows` of
// `pitch` elements and kFilterSlack more. Elements of `padded` outside of the input must be 0, and
// are 0 again afterwards. Of bytes the input becomes floats less `zero`.
struct ChannelArgs {
  int64_t input[3], output[3], stride[3], pad[3];  // depth, lines, columns
  int64_t depth = 1, rows = 0, pitch = 0, plane = 0;
  int64_t filters = 1, taps = 0;
  const int64_t* offsets = nullptr;
  const TapRun* runs = nullptr;  // all taps, each once
  int64_t run_count = 0;
  const void* weights = nullptr;
  const void* bias = nullptr;  // may be null
  const void* in = nullptr;
  void* padded = nullptr;
  void* sums = nullptr;  // scratch memory of rows · pitch + kFilterSlack elements
  void* out = nullptr;
  Activation activation;  // which adds nothing
  float zero = 0;         // of bytes
  void* line = nullptr;   // of bytes: scratch memory of a line of the input, as floats
};
inline constexpr int64_t kFilterSlack = 32;
using FilterFn = void (*)(const ChannelArgs& args);

// out[f, p] = bias[f] + Σ_k weights[k, f] · in[position(p) + offsets[k]] for up to three vectors of
// filters f: a convolution at `lines` x `columns` output positions, where position(p) = p / columns
// · line_step + p mod columns · step. Rows of `weights`, and `bias`, are whole vectors, as few as
// the filters fit into; elements beyond the filters are 0.
struct WindowArgs {
  int64_t lines = 0, columns = 0, taps = 0, filters = 0;
  int64_t line_step = 0, step = 1;
  const int64_t* offsets = nullptr;
  const void* in = nullptr;
  const void* weights = nullptr;
  const void* bias = nullptr;
  void* tile = nullptr;  // scratch memory of lines · columns + kWindowVectorBytes rows of weights
  void* out = nullptr;
  int64_t out_stride = 0;  // between filters
  Activation activation;
  const void* residual = nullptr;  // where the activation adds it: in the places of `out`
};
inline constexpr int64_t kWindowVectorBytes = 64;
using WindowFn = void (*)(const WindowArgs& args);

// out[i] = the table's element of in[i], one of its 256 values. In byte_table.h.
struct ByteTable;
using LookupFn = void (*)(const ByteTable& table, int64_t count, const int32_t* in, uint32_t* out);
// out[i] = table[in[i]], of 256 bytes. `out` may be `in`.
using ByteMapFn = void (*)(int64_t count, const uint8_t* in, const uint8_t* table, uint8_t* out);

// Convolution of channels that lie side by side in a vector, each with filters of its own: out[c ·
// filters + f, p] = bias[f, c] + Σ_k weights[f, k, c] · image[positions[p] + offsets[k], c].
// First the inputs in[c, i] are put at image[places[i], c]. Elements of `weights`, `bias` and
// `image` are vectors, of which channels beyond `channels` are of no account; `places` count
// vectors, `positions` and `offsets` elements. Bytes become floats less `zero`, and their sums
// int32: they are whole numbers of at most 2^24.
struct LanesArgs {
  int64_t channels = 0;  // at most a vector
  int64_t inputs = 0, in_stride = 0;
  int64_t readable = 0;  // elements from `in` on
  const void* in = nullptr;
  const int32_t* places = nullptr;
  void* image = nullptr;
  int64_t filters = 1, taps = 0, outputs = 0;
  // Outputs whose positions are side by side, and taps: of each line. 1 where they are not.
  int64_t line_outputs = 1, line_taps = 1;
  const int64_t *positions = nullptr, *offsets = nullptr;
  const void* weights = nullptr;
  const void* bias = nullptr;
  void* tile = nullptr;  // scratch memory of kLanesTile vectors
  void* out = nullptr;
  int64_t out_stride = 0;          // between rows
  Activation activation;           // of floats
  const void* residual = nullptr;  // where the activation adds it: in the places of `out`
  float zero = 0;                  // of bytes
};
inline constexpr int64_t kLanesTile = 256;
using LanesFn = void (*)(const LanesArgs& args);

// In windows/overlap.h.
struct OverlapArgs;
using OverlapFn = void (*)(const OverlapArgs& args);

// In windows/pool.h.
struct PoolArgs;
using PoolFn = void (*)(const PoolArgs& args);

// In moves/weighted_rows.h.
struct WeightedRowsArgs;
using WeightedRowsFn = void (*)(const WeightedRowsArgs& args);

// In recurrent.h.
struct RecurrentKernels;

// In fourier.h.
struct FourierKernels;

// In byte_filter.h.
struct ByteFilterKernel;

// In integer_gemm.h.
struct IntegerKernels;
struct IntegerMultiplyArgs;
struct IntegerQuantizeArgs;
struct IntegerFinishArgs;
struct IntegerScaleArgs;
using IntegerFinishFn = void (*)(const IntegerFinishArgs& args);
using IntegerScaleFn = void (*)(const IntegerScaleArgs& args);
using IntegerQuantizeFn = void (*)(const IntegerQuantizeArgs& args);
// out = saturate(round(x / scale) + zero), ties to even; 0 where that is not a number.
using QuantizeFn = void (*)(int64_t count, const float* x, float scale, int32_t zero, uint8_t* out);
// out += c · (scale · scales), element by element.
using ScaleFn = void (*)(int64_t count, const int32_t* c, float scale, const float* scales,
                         float* out);

struct KernelTable {
  const char* name;
  // Null if the operation is not defined for the element class.
  UnaryFn unary[kElems][kUnaryOps];
  BinaryFn binary[kElems][kBinaryOps][kModes];
  ChainFn chain_f32, chain_f64;
  SelectFn select[kElems][2][2];  // [a is a scalar][b is a scalar]
  ReduceFn reduce[kElems][kReduceOps];
  RunningFn running_f32[kReduceOps];
  ConvertFn convert[kElems][kElems];       // [to][from]; floats as ir/scalars/integers.h says
  ConvertFn load[kStorageTypes];           // storage -> its element class
  ConvertFn store[kElems][kStorageTypes];  // element class -> storage, wrapping integers
  MoveFn move[4];                          // elements of 1, 2, 4 and 8 bytes
  PositionFn bound_positions;
  GatherFn gather[4];  // likewise
  LookupFn look_up;
  ByteMapFn map_bytes;
  RankFn next_before[kElems];
  GemmFn gemm_f32, gemm_f64;
  PackFn pack_f32, pack_f64;
  const RecurrentKernels *recurrent_f32, *recurrent_f64;
  const FourierKernels *fourier, *fourier_single;  // of several signals, and of one
  FilterFn filter_f32, filter_f64;
  FilterFn filter_u8, filter_i8;        // of bytes, with weights and sums of float32
  const ByteFilterKernel* byte_filter;  // with weights of bytes; null where the set has none
  LanesFn lanes_f32, lanes_f64, lanes_u8, lanes_i8;
  WindowFn window_f32, window_f64;
  // The same of positions side by side, which need `step` = 1, a vector of columns and no `tile`.
  WindowFn window_rows_f32, window_rows_f64;
  OverlapFn overlap_f32, overlap_f64;
  PoolFn pool_f32, pool_f64;
  WeightedRowsFn weighted_rows_f32, weighted_rows_f64;
  int64_t window_lanes_f32;  // float32 elements of a vector; of float64 there are half as many
  // Those that this machine runs, the best first; the last of them needs no extension.
  const IntegerKernels* integer[3];
  // For a constant signed factor, split by split_pairs; null where others are faster.
  const IntegerKernels* byte_pairs;
  IntegerFinishFn finish_i32, finish_f32;
  IntegerScaleFn scale_integers;
  IntegerQuantizeFn quantize_words;  // as IntegerKernels::quantize, to int32
  QuantizeFn quantize_f32;
  ScaleFn add_scaled_i32;
};

// The table of the machine's best instruction set. The environment variable REDFUSER_CPU (baseline,
// avx2 or avx512) can select a lower one.
const KernelTable& kernels();

}  // namespace redfuser::cpu
