#include "cpu/simd/gemm_pack.h"
#include "cpu/simd/isa.h"
#include "cpu/simd/quotients.h"
#include "cpu/simd/vector_math.h"

namespace redfuser::cpu::RF_ISA {
namespace {

template <class T, class Out, class Function, Mode mode>
void binary_kernel(int64_t rows, int64_t cols, void* out, int64_t out_stride, Operand a,
                   Operand b) {
  for (int64_t r = 0; r < rows; ++r) {
    const T* x = row_of<T>(a, r);
    const T* y = row_of<T>(b, r);
    Out* z = static_cast<Out*>(out) + r * out_stride;
    if constexpr (mode == Mode::VV) {
      RF_INDEPENDENT
      for (int64_t c = 0; c < cols; ++c) z[c] = Function::of(x[c], y[c]);
    } else if constexpr (mode == Mode::VS) {
      const T s = *y;
      RF_INDEPENDENT
      for (int64_t c = 0; c < cols; ++c) z[c] = Function::of(x[c], s);
    } else {
      const T s = *x;
      RF_INDEPENDENT
      for (int64_t c = 0; c < cols; ++c) z[c] = Function::of(s, y[c]);
    }
  }
}

// Rows divided by one number each.
template <class T>
void divide_rows(int64_t rows, int64_t cols, void* out, int64_t out_stride, Operand a, Operand b) {
  constexpr int W = VectorOf<T>::kWidth, kTogether = 4;
  for (int64_t r = 0; r < rows; ++r) {
    const T* x = row_of<T>(a, r);
    T* z = static_cast<T*>(out) + r * out_stride;
    const Divisor<T> divisor(*row_of<T>(b, r));
    int64_t c = 0;
    for (; c + kTogether * W <= cols; c += kTogether * W) {
      Vector<T> v[kTogether];
      divisor.template divide<kTogether>(v, [&](int j) { return load_vector(x + c + j * W); });
#pragma GCC unroll 4
      for (int j = 0; j < kTogether; ++j) store_vector(z + c + j * W, v[j]);
    }
    for (; c < cols; c += W) {
      const int64_t count = cols - c < W ? cols - c : W;
      Vector<T> v;
      divisor.template divide<1>(
          &v, [&](int) { return count < W ? load_part(x + c, count) : load_vector(x + c); });
      count < W ? store_part(z + c, v, count) : store_vector(z + c, v);
    }
  }
}

// exp(x - y) by whole vectors.
RF_INLINE void exp_differences(int64_t cols, const float* x, int64_t x_step, const float* y,
                               int64_t y_step, float* z) {
  constexpr int W = VectorOf<float>::kWidth;
  const auto vector = [](const float* from, int64_t step, int64_t count) {
    if (step == 0) return *from - Vector<float>{};
    return count < W ? load_part(from, count) : load_vector(from);
  };
  int64_t c = 0;
  for (; c + W <= cols; c += W) {
    store_vector(z + c,
                 exp_of(vector(x + c * x_step, x_step, W) - vector(y + c * y_step, y_step, W)));
  }
  const int64_t rest = cols - c;
  if (rest == 0) return;
  store_part(z + c,
             exp_of(vector(x + c * x_step, x_step, rest) - vector(y + c * y_step, y_step, rest)),
             rest);
}

template <Mode mode>
void exp_difference_kernel(int64_t rows, int64_t cols, void* out, int64_t out_stride, Operand a,
                           Operand b) {
  for (int64_t r = 0; r < rows; ++r) {
    exp_differences(cols, row_of<float>(a, r), mode != Mode::SV, row_of<float>(b, r),
                    mode != Mode::VS, static_cast<float*>(out) + r * out_stride);
  }
}

template <class T, class Function, class Out = T>
void add(KernelTable& table, Elem elem, BinaryOp op) {
  BinaryFn* modes = table.binary[static_cast<int>(elem)][static_cast<int>(op)];
  modes[0] = binary_kernel<T, Out, Function, Mode::VV>;
  modes[1] = binary_kernel<T, Out, Function, Mode::VS>;
  modes[2] = binary_kernel<T, Out, Function, Mode::SV>;
}

#define RF_BINARY(NAME, EXPRESSION)                             \
  template <class T>                                            \
  struct NAME {                                                 \
    static RF_INLINE auto of(T x, T y) { return (EXPRESSION); } \
  };
// Overflow wraps: the work is done on unsigned integers.
#define RF_WRAPPING(NAME, OPERATOR)                                                      \
  template <class T>                                                                     \
  struct NAME {                                                                          \
    static RF_INLINE T of(T x, T y) {                                                    \
      return static_cast<T>(static_cast<uint64_t>(x) OPERATOR static_cast<uint64_t>(y)); \
    }                                                                                    \
  };

RF_BINARY(Add, x + y)
RF_BINARY(Sub, x - y)
RF_BINARY(Mul, x* y)
RF_BINARY(Div, x / y)
// NaN if either is NaN.
RF_BINARY(Min, (x < y || x != x) ? x : y)
RF_BINARY(Max, (x > y || x != x) ? x : y)
RF_BINARY(Less, static_cast<uint8_t>(x < y))
RF_BINARY(LessEqual, static_cast<uint8_t>(x <= y))
RF_BINARY(Equal, static_cast<uint8_t>(x == y))
RF_BINARY(ExpSub, exp_of(x - y))
RF_BINARY(BitAnd, static_cast<T>(x& y))
RF_BINARY(BitOr, static_cast<T>(x | y))
RF_BINARY(BitXor, static_cast<T>(x ^ y))
RF_WRAPPING(AddInteger, +)
RF_WRAPPING(SubInteger, -)
RF_WRAPPING(MulInteger, *)

template <class T>
RF_INLINE bool is_minus_one(T y) {
  return static_cast<T>(-1) < 0 && y == static_cast<T>(-1);
}

// Of two integers and their truncated quotient. Remainders of a division by zero are zero.
struct DivInteger {
  template <class T>
  static RF_INLINE T of(T, T, T q) {
    return q;
  }
};
struct TruncModInteger {
  template <class T>
  static RF_INLINE T of(T x, T y, T q) {
    return y == 0 ? 0 : SubInteger<T>::of(x, MulInteger<T>::of(q, y));
  }
};
struct FloorModInteger {
  template <class T>
  static RF_INLINE T of(T x, T y, T q) {
    const T r = TruncModInteger::of(x, y, q);
    return (r != 0 && ((r < 0) != (y < 0))) ? r + y : r;
  }
};
struct FloorDivInteger {
  template <class T>
  static RF_INLINE T of(T x, T y, T q) {
    const T r = TruncModInteger::of(x, y, q);
    return (r != 0 && ((r < 0) != (y < 0))) ? q - 1 : q;
  }
};
RF_BINARY(ShiftLeft, y<0 || y> 63 ? T{0} : static_cast<T>(static_cast<uint64_t>(x) << y))
RF_BINARY(ShiftRight, y<0 || y> 63 ? T{0} : static_cast<T>(static_cast<uint64_t>(x) >> y))
template <class T>
struct PowInteger {
  static RF_INLINE T of(T x, T y) {
    if (y < 0) return x == 1 ? 1 : (is_minus_one(x) ? static_cast<T>((y & 1) ? -1 : 1) : 0);
    T result = 1;
    for (; y; y >>= 1, x = MulInteger<T>::of(x, x))
      if (y & 1) result = MulInteger<T>::of(result, x);
    return result;
  }
};

RF_INLINE float floor_of(float x) { return __builtin_floorf(x); }
RF_INLINE double floor_of(double x) { return __builtin_floor(x); }
RF_INLINE float power_of(float x, float y) { return pow_of(x, y); }
RF_INLINE double power_of(double x, double y) { return __builtin_pow(x, y); }
RF_BINARY(FloorDiv, floor_of(x / y))
RF_BINARY(Pow, power_of(x, y))

// Of a remainder and the divisor.
struct TruncMod {
  template <class T>
  static RF_INLINE T of(T r, T) {
    return r;
  }
};
struct FloorMod {
  template <class T>
  static RF_INLINE T of(T r, T y) {
    return (r != 0 && ((r < 0) != (y < 0))) ? r + y : r;
  }
};

template <class T, class Function>
void add_remainder(KernelTable& table, Elem elem, BinaryOp op) {
  BinaryFn* modes = table.binary[static_cast<int>(elem)][static_cast<int>(op)];
  modes[0] = remainder_kernel<T, Function, Mode::VV>;
  modes[1] = remainder_kernel<T, Function, Mode::VS>;
  modes[2] = remainder_kernel<T, Function, Mode::SV>;
}

template <class T, class Function>
void add_quotient(KernelTable& table, Elem elem, BinaryOp op) {
  BinaryFn* modes = table.binary[static_cast<int>(elem)][static_cast<int>(op)];
  modes[0] = quotient_kernel<T, Function, Mode::VV>;
  modes[1] = quotient_kernel<T, Function, Mode::VS>;
  modes[2] = quotient_kernel<T, Function, Mode::SV>;
}

template <class T>
void add_ordered(KernelTable& table, Elem elem) {
  add<T, Min<T>>(table, elem, BinaryOp::Min);
  add<T, Max<T>>(table, elem, BinaryOp::Max);
  add<T, Less<T>, uint8_t>(table, elem, BinaryOp::Less);
  add<T, LessEqual<T>, uint8_t>(table, elem, BinaryOp::LessEqual);
  add<T, Equal<T>, uint8_t>(table, elem, BinaryOp::Equal);
}

template <class T>
void add_floating(KernelTable& table, Elem elem) {
  add<T, Add<T>>(table, elem, BinaryOp::Add);
  add<T, Sub<T>>(table, elem, BinaryOp::Sub);
  add<T, Mul<T>>(table, elem, BinaryOp::Mul);
  add<T, Div<T>>(table, elem, BinaryOp::Div);
  table
      .binary[static_cast<int>(elem)][static_cast<int>(BinaryOp::Div)][static_cast<int>(Mode::VS)] =
      divide_rows<T>;
  add<T, FloorDiv<T>>(table, elem, BinaryOp::FloorDiv);
  add_remainder<T, FloorMod>(table, elem, BinaryOp::FloorMod);
  add_remainder<T, TruncMod>(table, elem, BinaryOp::TruncMod);
  add<T, Pow<T>>(table, elem, BinaryOp::Pow);
}

template <class T>
void add_bitwise(KernelTable& table, Elem elem) {
  add<T, BitAnd<T>>(table, elem, BinaryOp::BitAnd);
  add<T, BitOr<T>>(table, elem, BinaryOp::BitOr);
  add<T, BitXor<T>>(table, elem, BinaryOp::BitXor);
}

template <class T>
void add_integer(KernelTable& table, Elem elem) {
  add_ordered<T>(table, elem);
  add_bitwise<T>(table, elem);
  add<T, AddInteger<T>>(table, elem, BinaryOp::Add);
  add<T, SubInteger<T>>(table, elem, BinaryOp::Sub);
  add<T, MulInteger<T>>(table, elem, BinaryOp::Mul);
  add_quotient<T, DivInteger>(table, elem, BinaryOp::Div);
  add_quotient<T, FloorDivInteger>(table, elem, BinaryOp::FloorDiv);
  add_quotient<T, FloorModInteger>(table, elem, BinaryOp::FloorMod);
  add_quotient<T, TruncModInteger>(table, elem, BinaryOp::TruncMod);
  add<T, PowInteger<T>>(table, elem, BinaryOp::Pow);
  add<T, ShiftLeft<T>>(table, elem, BinaryOp::ShiftLeft);
  add<T, ShiftRight<T>>(table, elem, BinaryOp::ShiftRight);
}

}  // namespace

void add_binary(KernelTable& table) {
  add_ordered<float>(table, Elem::F32);
  add_ordered<double>(table, Elem::F64);
  add_ordered<uint8_t>(table, Elem::Bool);
  add_floating<float>(table, Elem::F32);
  add_floating<double>(table, Elem::F64);
  BinaryFn* exp_sub = table.binary[static_cast<int>(Elem::F32)][static_cast<int>(BinaryOp::ExpSub)];
  exp_sub[0] = exp_difference_kernel<Mode::VV>;
  exp_sub[1] = exp_difference_kernel<Mode::VS>;
  exp_sub[2] = exp_difference_kernel<Mode::SV>;
  add<double, ExpSub<double>>(table, Elem::F64, BinaryOp::ExpSub);
  add_bitwise<uint8_t>(table, Elem::Bool);
  add<uint8_t, BitAnd<uint8_t>>(table, Elem::Bool, BinaryOp::And);
  add<uint8_t, BitOr<uint8_t>>(table, Elem::Bool, BinaryOp::Or);
  add<uint8_t, BitXor<uint8_t>>(table, Elem::Bool, BinaryOp::Xor);
  add_integer<int32_t>(table, Elem::I32);
  add_integer<int64_t>(table, Elem::I64);
  add_integer<uint64_t>(table, Elem::U64);
}

}  // namespace redfuser::cpu::RF_ISA
