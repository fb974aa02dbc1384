// Rows of running reductions (RunningFn).
#include "cpu/simd/isa.h"

namespace redfuser::cpu::RF_ISA {
namespace {

// A NaN, once in, stays.
struct Sum {
  template <class V>
  static RF_INLINE V of(V total, V x) {
    return total + x;
  }
};
struct Prod {
  template <class V>
  static RF_INLINE V of(V total, V x) {
    return total * x;
  }
};
struct Max {
  template <class V>
  static RF_INLINE V of(V total, V x) {
    return ((x > total) | (x != x)) ? x : total;
  }
};
struct Min {
  template <class V>
  static RF_INLINE V of(V total, V x) {
    return ((x < total) | (x != x)) ? x : total;
  }
};

template <class Combine, bool kExclusive>
RF_INLINE void run(int64_t count, const float* x, double* totals, float* out) {
  constexpr int W = VectorOf<double>::kWidth;
  typedef float Floats __attribute__((vector_size(W * sizeof(float))));
  int64_t c = 0;
  for (; c + W <= count; c += W) {
    Floats elements;
    __builtin_memcpy(&elements, x + c, sizeof(elements));
    const Vector<double> total = load_vector(totals + c);
    const Vector<double> next =
        Combine::of(total, __builtin_convertvector(elements, Vector<double>));
    store_vector(totals + c, next);
    elements = __builtin_convertvector(kExclusive ? total : next, Floats);
    __builtin_memcpy(out + c, &elements, sizeof(elements));
  }
  for (; c < count; ++c) {
    const double total = totals[c], next = Combine::of(total, static_cast<double>(x[c]));
    totals[c] = next;
    out[c] = static_cast<float>(kExclusive ? total : next);
  }
}

template <class Combine>
void running(int64_t count, const float* x, bool exclusive, double* totals, float* out) {
  exclusive ? run<Combine, true>(count, x, totals, out)
            : run<Combine, false>(count, x, totals, out);
}

}  // namespace

void add_running(KernelTable& table) {
  table.running_f32[static_cast<int>(ReduceOp::Sum)] = running<Sum>;
  table.running_f32[static_cast<int>(ReduceOp::Prod)] = running<Prod>;
  table.running_f32[static_cast<int>(ReduceOp::Max)] = running<Max>;
  table.running_f32[static_cast<int>(ReduceOp::Min)] = running<Min>;
}

}  // namespace redfuser::cpu::RF_ISA
