// streaming over j<768 for [i0<4096]
//   reference 0 = select(float32(count) == 0,0,A0/float32(count))  (after 1)
//   A0[] (plain) <- sum float32(%0[i0,j])
//   A1[] (translated) <- sum (float32(%0[i0,j]) - new0)*(float32(%0[i0,j]) - new0), moved by A1 + (float32(count)*((old0 - new0)*(old0 - new0)))
//   d0 = A0
//   d1 = float32(count)*((select(float32(count) == 0,0,A0/float32(count)) - (d0/768))*(select(float32(count) == 0,0,A0/float32(count)) - (d0/768))) + A1
//   %1[i0<4096, j<768] = float16((float32(%0[i0,j]) - (d0/768))/sqrt(9.99999975e-06 + (d1*0.00130208333)))*%2[j] + %3[j]
#include "device/types.cuh"
#include "device/reduce.cuh"
#include "device/row_fold.cuh"
struct Config {
  static constexpr int kLanes = 32, kThreads = 128, kChunks = 3, kCluster = 1;
  static constexpr bool kWhole = true, kShared = false, kFull = true, kVectors = true;
  static constexpr RowPart kPart = RowPart::Row;
};
struct State {
  alignas(8) float a0;
  alignas(8) float a1;
  alignas(8) int count;
};
struct Form {
  using State = ::State;
  static constexpr bool kMapsBack = true;
  static constexpr bool kTransposes = false, kRegisters = false;
  static constexpr int kWidth = 8, kPhases = 2;
  struct Row {
    long long begin;
    int extent;
    long long c0;
    long long b0;
    const half_t* in0;
    const half_t* in1;
    const half_t* in2;
  };
  struct Kept { unsigned k0[4]; };
  struct Words {
    unsigned k1[4];
    unsigned k2[4];
  };
  struct Running {
    State state, part;
    float old0, new0;
  };
  struct Tail {
    float r0;
    float r1;
    Divisor by1;
  };
  struct Values { float y0[kWidth]; };
  half_t* p0;
  const half_t* __restrict__ p1;
  const half_t* __restrict__ p2;
  const half_t* __restrict__ p3;
  __device__ __forceinline__ Row row_of(long long number, long long begin, int extent) const {
    Row row;
    row.begin = begin;
    row.extent = extent;
    row.c0 = number;
    const long long t0 = 768ll * number;
    row.b0 = t0;
    row.in0 = p1 + (row.b0 + begin * 1);
    row.in1 = p2 + (0ll + begin * 1);
    row.in2 = p3 + (0ll + begin * 1);
    return row;
  }
  template <bool Vector> __device__ __forceinline__ int shift(const Row& row, int free) const { return Vector ? 0 : misalignment<kWidth>(row.in0, free); }
  __device__ __forceinline__ static State identity() {
    State s;
    s.a0 = float(0);
    s.a1 = float(0);
    s.count = 0;
    return s;
  }
  template <int High, int Low> __device__ __forceinline__ State merged(State s) const {
    const State u = s;
    State t;
    t.count = mask_reduce<SumOp, High, Low>(s.count);
    float old0;
    const float t0 = static_cast<float>(static_cast<long long>(s.count));
    const bool t1 = t0 == (0x0p+0f);
    const float t2 = s.a0 / t0;
    const float t3 = t1 ? (0x0p+0f) : t2;
    old0 = t3;
    float new0;
    t.a0 = mask_reduce<SumOp, High, Low>(s.a0);
    const float t4 = static_cast<float>(static_cast<long long>(t.count));
    const bool t5 = t4 == (0x0p+0f);
    const float t6 = t.a0 / t4;
    const float t7 = t5 ? (0x0p+0f) : t6;
    new0 = t7;
    const float t8 = static_cast<float>(static_cast<long long>(u.count));
    const float t9 = old0 - new0;
    const float t10 = t9 * t9;
    const float t11 = t8 * t10;
    const float t12 = u.a1 + t11;
    s.a1 = t12;
    t.a1 = mask_reduce<SumOp, High, Low>(s.a1);
    return t;
  }
  __device__ __forceinline__ State merge(const State& a, const State& b) const {
    State t;
    t.count = a.count + b.count;
    float new0;
    float olda0;
    const float t0 = static_cast<float>(static_cast<long long>(a.count));
    const bool t1 = t0 == (0x0p+0f);
    const float t2 = a.a0 / t0;
    const float t3 = t1 ? (0x0p+0f) : t2;
    olda0 = t3;
    float oldb0;
    const float t4 = static_cast<float>(static_cast<long long>(b.count));
    const bool t5 = t4 == (0x0p+0f);
    const float t6 = b.a0 / t4;
    const float t7 = t5 ? (0x0p+0f) : t6;
    oldb0 = t7;
    t.a0 = SumOp::apply(a.a0, b.a0);
    const float t8 = static_cast<float>(static_cast<long long>(t.count));
    const bool t9 = t8 == (0x0p+0f);
    const float t10 = t.a0 / t8;
    const float t11 = t9 ? (0x0p+0f) : t10;
    new0 = t11;
    const float t12 = static_cast<float>(static_cast<long long>(a.count));
    const float t13 = olda0 - new0;
    const float t14 = t13 * t13;
    const float t15 = t12 * t14;
    const float t16 = a.a1 + t15;
    const float t17 = static_cast<float>(static_cast<long long>(b.count));
    const float t18 = oldb0 - new0;
    const float t19 = t18 * t18;
    const float t20 = t17 * t19;
    const float t21 = b.a1 + t20;
    t.a1 = SumOp::apply(t16, t21);
    return t;
  }
  __device__ __forceinline__ void start(Running& t, const State& s) const {
    const float t0 = static_cast<float>(static_cast<long long>(s.count));
    const bool t1 = t0 == (0x0p+0f);
    const float t2 = s.a0 / t0;
    const float t3 = t1 ? (0x0p+0f) : t2;
    t.old0 = t3;
  }
  __device__ __forceinline__ void begin(Running& t, const State& s, int added) const {
    t.part = identity();
    t.state.count = s.count + added;
  }
  __device__ __forceinline__ void renew(Running& t) const { t.old0 = t.new0; }
  template <bool Whole> __device__ __forceinline__ void settle(Phase<0>, Running& t, const State& s) const {
    if constexpr (Whole) {
      t.state.a0 = t.part.a0;
      const float t0 = static_cast<float>(static_cast<long long>(t.state.count));
      const bool t1 = t0 == (0x0p+0f);
      const float t2 = t.state.a0 / t0;
      const float t3 = t1 ? (0x0p+0f) : t2;
      t.new0 = t3;
    } else {
      t.state.a0 = SumOp::apply(s.a0, t.part.a0);
      const float t0 = static_cast<float>(static_cast<long long>(t.state.count));
      const bool t1 = t0 == (0x0p+0f);
      const float t2 = t.state.a0 / t0;
      const float t3 = t1 ? (0x0p+0f) : t2;
      t.new0 = t3;
    }
  }
  template <bool Whole> __device__ __forceinline__ void settle(Phase<1>, Running& t, const State& s) const {
    if constexpr (Whole) {
      t.state.a1 = t.part.a1;
    } else {
      const float t0 = static_cast<float>(static_cast<long long>(s.count));
      const float t1 = t.old0 - t.new0;
      const float t2 = t1 * t1;
      const float t3 = t0 * t2;
      const float t4 = s.a1 + t3;
      t.state.a1 = SumOp::apply(t4, t.part.a1);
    }
  }
  template <bool Vector> __device__ __forceinline__ void keep(Kept& kept, bool coalesced, const Row& row, int c, int first) const { load_words<half_t, 8, Vector, true>(kept.k0, row.in0 + first * 1, -first * 1, (row.extent - first) * 1); }
  template <bool Vector, Reads Set> __device__ __forceinline__ void fetch(Words& words, const Row& row, int c, int first) const {
    if constexpr (Set == Reads::Folded) {
    } else {
      load_words<half_t, 8, Vector, false>(words.k1, row.in1 + first * 1, -first * 1, (row.extent - first) * 1);
      load_words<half_t, 8, Vector, false>(words.k2, row.in2 + first * 1, -first * 1, (row.extent - first) * 1);
    }
  }
  __device__ __forceinline__ void lift(Phase<0>, Running& t, const Kept& kept, const Words& words, const Row& row, int first, int v) const {
    const long long at = row.begin + first + v;
    t.part.a0 = SumOp::apply(t.part.a0, pick<half_t>(kept.k0, v));
  }
  __device__ __forceinline__ void lift(Phase<1>, Running& t, const Kept& kept, const Words& words, const Row& row, int first, int v) const {
    const long long at = row.begin + first + v;
    const float t0 = pick<half_t>(kept.k0, v) - t.new0;
    const float t1 = t0 * t0;
    t.part.a1 = SumOp::apply(t.part.a1, t1);
  }
  __device__ __forceinline__ Tail finish(const State& s, const Row& row) const {
    Tail tail;
    const float t0 = static_cast<float>(768ll);
    const bool t1 = t0 == (0x0p+0f);
    const float t2 = s.a0 / t0;
    const float t3 = t1 ? (0x0p+0f) : t2;
    const float t4 = s.a0 / (0x1.8p+9f);
    const float t5 = t3 - t4;
    const float t6 = t5 * t5;
    const float t7 = t0 * t6;
    const float t8 = t7 + s.a1;
    tail.r0 = t4;
    const float t9 = t8 * (0x1.555556p-10f);
    const float t10 = (0x1.4f8b58p-17f) + t9;
    const float t11 = sqrtf(t10);
    tail.r1 = t11;
    tail.by1 = divisor_of(tail.r1);
    return tail;
  }
  template <int Lanes> __device__ __forceinline__ void write_rows(const Row& row, const Tail& tail, int lane) const {}
  template <bool Vector> __device__ __forceinline__ void map(Values& y, const Kept& kept, const Words& words, const Row& row, const Tail& tail, int first, int v) const {
    const long long at = row.begin + first + v;
    const float t0 = pick<half_t>(kept.k0, v) - tail.r0;
    const float t1 = divide(t0, tail.by1);
    const float t2 = t1 * pick<half_t>(words.k1, v);
    const float t3 = t2 + pick<half_t>(words.k2, v);
    y.y0[v] = t3;
  }
  template <bool Vector> __device__ __forceinline__ void put(const Values& y, const Row& row, int first) const { store_words<kWidth, Vector>(p0 + row.b0 + row.begin + first, y.y0, -first, row.extent - first); }
};
extern "C" __global__ void __launch_bounds__(128) row_resident_sum2_f16_cf87d2f4(half_t* p0, const half_t* __restrict__ p1, const half_t* __restrict__ p2, const half_t* __restrict__ p3) {
  ptx_launch_dependents();
  ptx_await_launches_together();
  const RowMemory<State, void> memory{nullptr, nullptr, nullptr};
  const Form form{p0, p1, p2, p3};
  fold_rows<Config>(form, memory, 4096ll, 768ll, 0, nullptr, nullptr, aligned(p0) && aligned(p1) && aligned(p2) && aligned(p3));
}
