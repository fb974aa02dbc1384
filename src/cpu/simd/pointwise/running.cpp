// Rows of running reductions (RunningFn).
#include "cpu/simd/isa.h"

namespace redfuser::cpu::RF_ISA {
namespace {

// A NaN, once in, stays.
struct Sum {
  static RF_INLINE double of(double total, double x) { return total + x; }
};
struct Prod {
  static RF_INLINE double of(double total, double x) { return total * x; }
};
struct Max {
  static RF_INLINE double of(double total, double x) {
    return ((x > total) | (x != x)) ? x : total;
  }
};
struct Min {
  static RF_INLINE double of(double total, double x) {
    return ((x < total) | (x != x)) ? x : total;
  }
};

template <class Combine, bool kExclusive>
RF_INLINE void run(int64_t count, const float* x, double* totals, float* out) {
  RF_INDEPENDENT
  for (int64_t c = 0; c < count; ++c) {
    const double total = totals[c], next = Combine::of(total, x[c]);
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
