#include "cpu/simd/pointwise/arc_math.h"
#include "cpu/simd/pointwise/unary.h"

namespace redfuser::cpu::RF_ISA {
namespace {

RF_FUNCTION(Neg, float, float, -x)
RF_FUNCTION(Abs, float, float, __builtin_fabsf(x))
RF_FUNCTION(Sign, float, float, (x != x ? x : (x > 0.0f ? 1.0f : (x < 0.0f ? -1.0f : 0.0f))))
RF_FUNCTION(Log, float, float, log_of(x))
RF_FUNCTION(Sqrt, float, float, __builtin_sqrtf(x))
RF_FUNCTION(Reciprocal, float, float, 1.0f / x)
RF_FUNCTION(Floor, float, float, __builtin_floorf(x))
RF_FUNCTION(Ceil, float, float, __builtin_ceilf(x))
RF_FUNCTION(Round, float, float, __builtin_rintf(x))
RF_FUNCTION(Tan, float, float, __builtin_tanf(x))
RF_FUNCTION(Asin, float, float, asin_of(x))
RF_FUNCTION(Acos, float, float, acos_of(x))
RF_FUNCTION(Atan, float, float, atan_of(x))
RF_FUNCTION(Sinh, float, float, sinh_of(x))
RF_FUNCTION(Cosh, float, float, cosh_of(x))
RF_FUNCTION(Asinh, float, float, asinh_of(x))
RF_FUNCTION(Acosh, float, float, acosh_of(x))
RF_FUNCTION(Atanh, float, float, atanh_of(x))
RF_FUNCTION(RoundBFloat, float, float, bfloat_to_float(float_to_bfloat(x)))
RF_FUNCTION(IsNaN, uint8_t, float, x != x)
RF_FUNCTION(IsPosInf, uint8_t, float, x == __builtin_inff())
RF_FUNCTION(IsNegInf, uint8_t, float, x == -__builtin_inff())

struct Exp {
  static RF_INLINE Vector<float> of(Vector<float> x) { return exp_of(x); }
  static constexpr UnaryFn kernel = whole_vectors_kernel<float, Exp>;
};

struct Tanh {
  static RF_INLINE Vector<float> of(Vector<float> x) { return tanh_of(x); }
  static constexpr UnaryFn kernel = whole_vectors_kernel<float, Tanh>;
};

struct Erf {
  static RF_INLINE Vector<float> of(Vector<float> x) { return erf_of(x); }
  static constexpr UnaryFn kernel = whole_vectors_kernel<float, Erf>;
};

template <class Function>
RF_INLINE void in_place(float* x, int64_t vectors) {
  constexpr int W = VectorOf<float>::kWidth;
  for (int64_t v = 0; v < vectors; ++v) {
    store_vector(x + v * W, Function::of(load_vector(x + v * W)));
  }
}

struct RoundHalf {
  static RF_INLINE Vector<float> of(Vector<float> x) { return floats_of(halves_of(x)); }
  static constexpr UnaryFn kernel = whole_vectors_kernel<float, RoundHalf>;
};

// Arguments beyond the range reduction's limit are rare: such a row is done by the C library.
template <bool kCosine>
void sine_kernel(int64_t rows, int64_t cols, void* out, int64_t out_stride, Operand a) {
  for (int64_t r = 0; r < rows; ++r) {
    const float* x = row_of<float>(a, r);
    float* y = static_cast<float*>(out) + r * out_stride;
    int32_t large = 0;
    for (int64_t c = 0; c < cols; ++c) large |= !(__builtin_fabsf(x[c]) <= kTrigonometricLimit);
    if (large) {
      for (int64_t c = 0; c < cols; ++c)
        y[c] = kCosine ? __builtin_cosf(x[c]) : __builtin_sinf(x[c]);
    } else {
      RF_INDEPENDENT
      for (int64_t c = 0; c < cols; ++c) y[c] = sine_of<kCosine>(x[c]);
    }
  }
}

struct Sin {
  static constexpr UnaryFn kernel = sine_kernel<false>;
};
struct Cos {
  static constexpr UnaryFn kernel = sine_kernel<true>;
};

}  // namespace

void erf_in_place(float* x, int64_t vectors) { in_place<Erf>(x, vectors); }
void tanh_in_place(float* x, int64_t vectors) { in_place<Tanh>(x, vectors); }

void add_unary_float(KernelTable& table) {
  UnaryFn* row = table.unary[static_cast<int>(Elem::F32)];
#define RF_UNARY(NAME, REFERENCE, ...) add_unary<float, NAME>(row, UnaryOp::NAME);
#include "ir/scalars/operations.def"
  add_unary<float, RoundHalf>(row, UnaryOp::RoundHalf);
  add_unary<float, RoundBFloat>(row, UnaryOp::RoundBFloat);
}

}  // namespace redfuser::cpu::RF_ISA
