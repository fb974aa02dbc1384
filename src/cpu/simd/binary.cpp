#include "cpu/simd/gemm_pack.h"
#include "cpu/simd/isa.h"
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

// Of two integers. Division by zero and the overflowing quotient do not trap: they give zero and
// the wrapped value.
template <class T>
RF_INLINE bool is_minus_one(T y) {
  return static_cast<T>(-1) < 0 && y == static_cast<T>(-1);
}
template <class T>
struct DivInteger {
  static RF_INLINE T of(T x, T y) {
    return y == 0 ? 0 : (is_minus_one(y) ? SubInteger<T>::of(0, x) : x / y);
  }
};
RF_BINARY(TruncModInteger, static_cast<T>((y == 0 || is_minus_one(y)) ? 0 : x % y))
template <class T>
struct FloorModInteger {
  static RF_INLINE T of(T x, T y) {
    const T r = TruncModInteger<T>::of(x, y);
    return (r != 0 && ((r < 0) != (y < 0))) ? r + y : r;
  }
};
template <class T>
struct FloorDivInteger {
  static RF_INLINE T of(T x, T y) {
    const T q = DivInteger<T>::of(x, y);
    const T r = TruncModInteger<T>::of(x, y);
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

RF_INLINE float fmod_of(float x, float y) { return __builtin_fmodf(x, y); }
RF_INLINE double fmod_of(double x, double y) { return __builtin_fmod(x, y); }
RF_INLINE float floor_of(float x) { return __builtin_floorf(x); }
RF_INLINE double floor_of(double x) { return __builtin_floor(x); }
RF_INLINE float power_of(float x, float y) { return pow_of(x, y); }
RF_INLINE double power_of(double x, double y) { return __builtin_pow(x, y); }
RF_BINARY(TruncMod, fmod_of(x, y))
RF_BINARY(FloorDiv, floor_of(x / y))
RF_BINARY(Pow, power_of(x, y))
template <class T>
struct FloorMod {
  static RF_INLINE T of(T x, T y) {
    const T r = fmod_of(x, y);
    return (r != 0 && ((r < 0) != (y < 0))) ? r + y : r;
  }
};

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
  add<T, FloorDiv<T>>(table, elem, BinaryOp::FloorDiv);
  add<T, FloorMod<T>>(table, elem, BinaryOp::FloorMod);
  add<T, TruncMod<T>>(table, elem, BinaryOp::TruncMod);
  add<T, Pow<T>>(table, elem, BinaryOp::Pow);
  add<T, ExpSub<T>>(table, elem, BinaryOp::ExpSub);
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
  add<T, DivInteger<T>>(table, elem, BinaryOp::Div);
  add<T, FloorDivInteger<T>>(table, elem, BinaryOp::FloorDiv);
  add<T, FloorModInteger<T>>(table, elem, BinaryOp::FloorMod);
  add<T, TruncModInteger<T>>(table, elem, BinaryOp::TruncMod);
  add<T, PowInteger<T>>(table, elem, BinaryOp::Pow);
  add<T, ShiftLeft<T>>(table, elem, BinaryOp::ShiftLeft);
  add<T, ShiftRight<T>>(table, elem, BinaryOp::ShiftRight);
}

// Vectors of a chain's result that are held together: links are decoded once for all of them.
#if RF_VECTOR_BYTES == 64
constexpr int kChainVectors = 8;
#else
constexpr int kChainVectors = 4;
#endif

template <class T>
struct ChainRow {
  const T* first;
  const T* operands[kMostLinks];
};

// NV whole vectors, or, for NV = 0, one with so many elements.
template <class T, int NV>
RF_INLINE Vector<T> load_columns(const T* from, int j, int64_t count) {
  if constexpr (NV > 0) return load_vector(from + j * VectorOf<T>::kWidth);
  Vector<T> v{};
  copy_part(reinterpret_cast<T*>(&v), from, count);
  return v;
}

// v = function(v, operand), or the other way round.
template <class T, int NV, bool kReversed, class Function>
RF_INLINE void apply_link(Vector<T>* v, const T* from, bool vector, int64_t count,
                          Function function) {
#pragma GCC unroll 8
  for (int j = 0; j < (NV > 0 ? NV : 1); ++j) {
    const Vector<T> o = vector ? load_columns<T, NV>(from, j, count) : *from - Vector<T>{};
    v[j] = kReversed ? function(o, v[j]) : function(v[j], o);
  }
}

// The results of NV vectors from column c on, or of `count` columns for NV = 0.
template <class T, int NV>
RF_INLINE void run_chain(const ChainArgs& g, const ChainRow<T>& row, int64_t c, int64_t count,
                         T* to) {
  constexpr int kVectors = NV > 0 ? NV : 1;
  const auto add = [](Vector<T> a, Vector<T> b) { return a + b; };
  const auto subtract = [](Vector<T> a, Vector<T> b) { return a - b; };
  const auto multiply = [](Vector<T> a, Vector<T> b) { return a * b; };
  const auto divide = [](Vector<T> a, Vector<T> b) { return a / b; };
  const auto least = [](Vector<T> a, Vector<T> b) { return ((a < b) | (a != a)) ? a : b; };
  const auto largest = [](Vector<T> a, Vector<T> b) { return ((a > b) | (a != a)) ? a : b; };
  Vector<T> v[kVectors];
#pragma GCC unroll 8
  for (int j = 0; j < kVectors; ++j) v[j] = load_columns<T, NV>(row.first + c, j, count);
  for (int i = 0; i < g.count; ++i) {
    const bool vector = g.links[i].vector;
    const T* from = row.operands[i] + (vector ? c : 0);
    switch (g.links[i].op) {
      case ChainOp::Neg:
#pragma GCC unroll 8
        for (int j = 0; j < kVectors; ++j) v[j] = -v[j];
        break;
      case ChainOp::Add:
        apply_link<T, NV, false>(v, from, vector, count, add);
        break;
      case ChainOp::Sub:
        apply_link<T, NV, false>(v, from, vector, count, subtract);
        break;
      case ChainOp::SubFrom:
        apply_link<T, NV, true>(v, from, vector, count, subtract);
        break;
      case ChainOp::Mul:
        apply_link<T, NV, false>(v, from, vector, count, multiply);
        break;
      case ChainOp::Div:
        apply_link<T, NV, false>(v, from, vector, count, divide);
        break;
      case ChainOp::DivInto:
        apply_link<T, NV, true>(v, from, vector, count, divide);
        break;
      case ChainOp::Max:
        apply_link<T, NV, false>(v, from, vector, count, largest);
        break;
      case ChainOp::MaxOf:
        apply_link<T, NV, true>(v, from, vector, count, largest);
        break;
      case ChainOp::Min:
        apply_link<T, NV, false>(v, from, vector, count, least);
        break;
      case ChainOp::MinOf:
        apply_link<T, NV, true>(v, from, vector, count, least);
        break;
    }
  }
  if constexpr (NV == 0) return copy_part(to, reinterpret_cast<const T*>(v), count);
#pragma GCC unroll 8
  for (int j = 0; j < NV; ++j) store_vector(to + j * VectorOf<T>::kWidth, v[j]);
}

// The last columns are a whole vector too, which overlaps the one before. It is computed first: the
// output may be the memory of an operand.
template <class T>
void chain_row(const ChainArgs& g, const ChainRow<T>& row, T* out) {
  constexpr int W = VectorOf<T>::kWidth;
  if (g.cols < W) return run_chain<T, 0>(g, row, 0, g.cols, out);
  T last[W] = {};
  if (g.cols % W != 0) run_chain<T, 1>(g, row, g.cols - W, 0, last);
  int64_t c = 0;
  for (; c + kChainVectors * W <= g.cols; c += kChainVectors * W) {
    run_chain<T, kChainVectors>(g, row, c, 0, out + c);
  }
  if (c + kChainVectors / 2 * W <= g.cols) {
    run_chain<T, kChainVectors / 2>(g, row, c, 0, out + c);
    c += kChainVectors / 2 * W;
  }
  for (; c + W <= g.cols; c += W) run_chain<T, 1>(g, row, c, 0, out + c);
  if (c < g.cols) store_vector(out + g.cols - W, load_vector(last));
}

template <class T>
void chain(const ChainArgs& g) {
  for (int64_t r = 0; r < g.rows; ++r) {
    ChainRow<T> row;
    row.first = row_of<T>(g.first, r);
    for (int i = 0; i < g.count; ++i) row.operands[i] = row_of<T>(g.links[i].operand, r);
    chain_row<T>(g, row, static_cast<T*>(g.out) + r * g.out_stride);
  }
}

}  // namespace

void add_binary(KernelTable& table) {
  table.chain_f32 = chain<float>;
  table.chain_f64 = chain<double>;
  add_ordered<float>(table, Elem::F32);
  add_ordered<double>(table, Elem::F64);
  add_ordered<uint8_t>(table, Elem::Bool);
  add_floating<float>(table, Elem::F32);
  add_floating<double>(table, Elem::F64);
  add_bitwise<uint8_t>(table, Elem::Bool);
  add<uint8_t, BitAnd<uint8_t>>(table, Elem::Bool, BinaryOp::And);
  add<uint8_t, BitOr<uint8_t>>(table, Elem::Bool, BinaryOp::Or);
  add<uint8_t, BitXor<uint8_t>>(table, Elem::Bool, BinaryOp::Xor);
  add_integer<int32_t>(table, Elem::I32);
  add_integer<int64_t>(table, Elem::I64);
  add_integer<uint64_t>(table, Elem::U64);
}

}  // namespace redfuser::cpu::RF_ISA
