// Chains of pointwise operations (ChainArgs). Compiled without contraction: every operation of a
// chain rounds, as it does alone.
#include "cpu/simd/gemm_pack.h"
#include "cpu/simd/isa.h"
#include "cpu/simd/pointwise/chain_quantize.h"
#include "cpu/simd/pointwise/chain_types.h"

namespace redfuser::cpu::RF_ISA {
namespace {

// Vectors of a result that are held together: steps are dispatched once for all of them.
constexpr int kVectors = 8;

bool has_scalars_of_rows(const ChainArgs& g) {
  bool any = false;
  for (int i = 0; i < g.count; ++i) {
    const ChainLink& link = g.links[i];
    any |= !is_unary(link.op) && !link.vector &&
           (link.operand.offsets != nullptr || link.operand.stride != 0);
  }
  return any;
}

// NV whole vectors, or, for NV = 0, one with so many elements.
template <class T, int NV>
RF_INLINE Vector<T> load_columns(const T* from, int j, int64_t count) {
  if constexpr (NV > 0) return load_vector(from + j * VectorOf<T>::kWidth);
  Vector<T> v{};
  copy_part(reinterpret_cast<T*>(&v), from, count);
  return v;
}

template <class T, int NV, class Function>
RF_INLINE void with_vector(Vector<T>* v, const T* from, int64_t count, Function function) {
  each_vector<NV>(
      [&](auto j) RF_INLINE_LAMBDA { v[j] = function(v[j], load_columns<T, NV>(from, j, count)); });
}

template <class T, int NV, class Function>
RF_INLINE void with_scalars(Vector<T>* v, const Step<T>& step, Function function) {
  const Vector<T> o = step.scalar - Vector<T>{}, second = step.second - Vector<T>{};
  each_vector<NV>([&](auto j) RF_INLINE_LAMBDA { v[j] = function(v[j], o, second); });
}

// Only the copy need be in memory.
template <class T, int NV>
RF_INLINE void with_function(Vector<T>* v, void (*function)(float* x, int64_t vectors)) {
  if constexpr (sizeof(T) == sizeof(float)) {
    constexpr int kCount = NV > 0 ? NV : 1;
    Vector<T> copy[kCount];
    each_vector<NV>([&](auto j) RF_INLINE_LAMBDA { copy[j] = v[j]; });
    function(reinterpret_cast<float*>(copy), kCount);
    each_vector<NV>([&](auto j) RF_INLINE_LAMBDA { v[j] = copy[j]; });
  }
}

template <class T, int NV>
RF_INLINE void run_step(Vector<T>* v, const Step<T>& step, int64_t c, int64_t count) {
  using V = Vector<T>;
  const auto vector = [&](auto function) RF_INLINE_LAMBDA {
    with_vector<T, NV>(v, step.vector + c, count, function);
  };
  const auto scalar = [&](auto function)
                          RF_INLINE_LAMBDA { with_scalars<T, NV>(v, step, function); };
  switch (step.code) {
    case Code::AddV:
      return vector([](V x, V o) { return x + o; });
    case Code::SubV:
      return vector([](V x, V o) { return x - o; });
    case Code::SubFromV:
      return vector([](V x, V o) { return o - x; });
    case Code::MulV:
      return vector([](V x, V o) { return x * o; });
    case Code::DivV:
      return vector([](V x, V o) { return x / o; });
    case Code::DivIntoV:
      return vector([](V x, V o) { return o / x; });
    case Code::MaxV:
      return vector([](V x, V o) { return ((x > o) | (x != x)) ? x : o; });
    case Code::MaxOfV:
      return vector([](V x, V o) { return ((o > x) | (o != o)) ? o : x; });
    case Code::MinV:
      return vector([](V x, V o) { return ((x < o) | (x != x)) ? x : o; });
    case Code::MinOfV:
      return vector([](V x, V o) { return ((o < x) | (o != o)) ? o : x; });
    case Code::AddS:
      return scalar([](V x, V o, V) { return x + o; });
    case Code::SubFromS:
      return scalar([](V x, V o, V) { return o - x; });
    case Code::MulS:
      return scalar([](V x, V o, V) { return x * o; });
    case Code::DivS:
      return scalar([](V x, V o, V) { return x / o; });
    case Code::DivIntoS:
      return scalar([](V x, V o, V) { return o / x; });
    // A value that is not a number is neither less nor greater, and stays.
    case Code::MaxS:
      return scalar([](V x, V o, V) { return x <= o ? o : x; });
    case Code::MaxOfS:
      return scalar([](V x, V o, V) { return o > x ? o : x; });
    case Code::MinS:
      return scalar([](V x, V o, V) { return x >= o ? o : x; });
    case Code::MinOfS:
      return scalar([](V x, V o, V) { return o < x ? o : x; });
    case Code::ScaleS:
      return scalar([](V x, V o, V second) { return x * o + second; });
    case Code::ClampS:
      return scalar([](V x, V o, V second) {
        const V above = x <= o ? o : x;
        return above >= second ? second : above;
      });
    case Code::Abs:
      return scalar([](V x, V, V) { return magnitude(x); });
    case Code::Round:
      return scalar([](V x, V, V) { return rounded<T>(x); });
    case Code::Exp:
      return with_function<T, NV>(v, exp_in_place);
    case Code::Tanh:
      return with_function<T, NV>(v, tanh_in_place);
  }
}

// The results of NV vectors from column c on, or of `count` columns for NV = 0.
template <class T, int NV>
RF_INLINE void run_chain(const Row<T>& row, int64_t c, int64_t count, char* to) {
  constexpr int kCount = NV > 0 ? NV : 1;
  Vector<T> v[kCount];
  load_typed<T, NV>(v, row.first + c * row.first_bytes, row.first_type, count);
  int i = 0;
  if constexpr (sizeof(T) == sizeof(float) && NV % kBytesVectors == 0 && NV > 0) {
    if (row.end.any) {
      for (; i < row.end.first; ++i) run_step<T, NV>(v, row.steps[i], c, count);
      if (store_quantized<NV>(row.end, v, to)) return;
    }
  }
  for (; i < row.count; ++i) run_step<T, NV>(v, row.steps[i], c, count);
  store_typed<T, NV>(to, v, row.out_type, count);
}

// Runs of NV vectors and fewer, down to kLeast, from column c on: the first column that is left.
template <class T, int NV, int kLeast>
RF_INLINE int64_t run_vectors(const Row<T>& row, int64_t c, int64_t cols, char* out) {
  constexpr int W = VectorOf<T>::kWidth;
  for (; c + NV * W <= cols; c += NV * W) {
    run_chain<T, NV>(row, c, 0, out + c * row.out_bytes);
  }
  if constexpr (NV > kLeast) c = run_vectors<T, NV / 2, kLeast>(row, c, cols, out);
  return c;
}

// The last columns are NV whole vectors too, which overlap those before. They are computed first:
// the output may be the memory of an operand.
template <class T, int NV>
__attribute__((noinline)) void chain_columns(const Row<T>& row, int64_t cols, char* out) {
  constexpr int64_t W = NV * VectorOf<T>::kWidth;
  char last[NV * sizeof(Vector<T>)] = {};
  if (cols % W != 0) run_chain<T, NV>(row, cols - W, 0, last);
  if (run_vectors<T, kVectors, NV>(row, 0, cols, out) == cols) return;
  __builtin_memcpy(out + (cols - W) * row.out_bytes, last, static_cast<size_t>(W * row.out_bytes));
}

// A chain that ends in bytes takes as many vectors at once as one of bytes has elements.
template <class T>
RF_INLINE void chain_row(const Row<T>& row, int64_t cols, char* out) {
  constexpr int W = VectorOf<T>::kWidth;
  if (cols < W) return run_chain<T, 0>(row, 0, cols, out);
  if (row.end.any && cols >= kBytesVectors * W) {
    return chain_columns<T, kBytesVectors>(row, cols, out);
  }
  chain_columns<T, 1>(row, cols, out);
}

bool follows(const Operand& a, bool vector, int64_t cols) {
  return a.offsets == nullptr && a.stride == (vector ? cols : 0);
}

// Rows that lie one after the other, with the same scalars, are one row.
ChainArgs long_rows(ChainArgs g) {
  bool one = g.rows > 1 && g.out_stride == g.cols && follows(g.first, true, g.cols);
  for (int i = 0; one && i < g.count; ++i) {
    const ChainLink& link = g.links[i];
    one = is_unary(link.op) || follows(link.operand, link.vector, g.cols);
  }
  if (one) g.cols *= g.rows, g.rows = 1;
  return g;
}

template <class T>
void chain(const ChainArgs& args) {
  const ChainArgs g = long_rows(args);
  if (g.rows == 0) return;
  const bool anew = has_scalars_of_rows(g);
  Row<T> row = row_of_chain<T>(g, 0);
  for (int64_t r = 0; r < g.rows; ++r) {
    if (r > 0) anew ? void(row = row_of_chain<T>(g, r)) : move_to_row(row, g, r);
    chain_row<T>(row, g.cols, static_cast<char*>(g.out) + r * g.out_stride * row.out_bytes);
  }
}

}  // namespace

void add_chain(KernelTable& table) {
  table.chain_f32 = chain<float>;
  table.chain_f64 = chain<double>;
}

}  // namespace redfuser::cpu::RF_ISA
