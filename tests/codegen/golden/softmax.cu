// streaming over j<1024 for [i0<8192]
//   reference 0 = A0  (after 1)
//   A0[] (plain) <- max float32(%0[i0,j])
//   A1[] (rescaled) <- sum exp(float32(%0[i0,j]) - select(isneginf(new0),0,new0)), moved by A1*select(isneginf(old0),1,exp(old0 - new0))
//   d0 = A0
//   d1 = A1*select(isneginf(A0),inf,1)
//   %1[i0<8192, j<1024] = float16(exp(float32(%0[i0,j]) - d0)/d1)
#include "device/types.cuh"
#include "device/reduce.cuh"
#include "device/row_fold.cuh"
struct Config {
  static constexpr int kLanes = 32, kThreads = 128, kChunks = 4, kCluster = 1;
  static constexpr bool kWhole = true, kShared = true, kFull = true, kVectors = true;
  static constexpr RowPart kPart = RowPart::Row;
};
struct State {
  alignas(8) float a0;
  alignas(8) float a1;
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
  };
  struct Kept {};
  struct Words { unsigned k0[4]; };
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
  __device__ __forceinline__ Row row_of(long long number, long long begin, int extent) const {
    Row row;
    row.begin = begin;
    row.extent = extent;
    row.c0 = number;
    const long long t0 = 1024ll * number;
    row.b0 = t0;
    row.in0 = p1 + (row.b0 + begin * 1);
    return row;
  }
  template <bool Vector> __device__ __forceinline__ int shift(const Row& row, int free) const { return Vector ? 0 : misalignment<kWidth>(row.in0, free); }
  __device__ __forceinline__ static State identity() {
    State s;
    s.a0 = (-INFINITY_F);
    s.a1 = float(0);
    return s;
  }
  template <int High, int Low> __device__ __forceinline__ State merged(State s) const {
    const State u = s;
    State t;
    float old0;
    old0 = s.a0;
    float new0;
    t.a0 = mask_reduce<MaxOp, High, Low>(s.a0);
    new0 = t.a0;
    const bool t0 = (old0 == -INFINITY_F);
    const float t1 = old0 - new0;
    const float t2 = exp_fast(t1);
    const float t3 = t0 ? (0x1p+0f) : t2;
    const float t4 = u.a1 * t3;
    s.a1 = t4;
    t.a1 = mask_reduce<SumOp, High, Low>(s.a1);
    return t;
  }
  __device__ __forceinline__ State merge(const State& a, const State& b) const {
    State t;
    float new0;
    float olda0;
    olda0 = a.a0;
    float oldb0;
    oldb0 = b.a0;
    t.a0 = MaxOp::apply(a.a0, b.a0);
    new0 = t.a0;
    const bool t0 = (olda0 == -INFINITY_F);
    const float t1 = olda0 - new0;
    const float t2 = exp_fast(t1);
    const float t3 = t0 ? (0x1p+0f) : t2;
    const float t4 = a.a1 * t3;
    const bool t5 = (oldb0 == -INFINITY_F);
    const float t6 = oldb0 - new0;
    const float t7 = exp_fast(t6);
    const float t8 = t5 ? (0x1p+0f) : t7;
    const float t9 = b.a1 * t8;
    t.a1 = SumOp::apply(t4, t9);
    return t;
  }
  __device__ __forceinline__ void start(Running& t, const State& s) const { t.old0 = s.a0; }
  __device__ __forceinline__ void begin(Running& t, const State& s, int added) const { t.part = identity(); }
  __device__ __forceinline__ void renew(Running& t) const { t.old0 = t.new0; }
  template <bool Whole> __device__ __forceinline__ void settle(Phase<0>, Running& t, const State& s) const {
    if constexpr (Whole) {
      t.state.a0 = t.part.a0;
      t.new0 = t.state.a0;
    } else {
      t.state.a0 = MaxOp::apply(s.a0, t.part.a0);
      t.new0 = t.state.a0;
    }
  }
  template <bool Whole> __device__ __forceinline__ void settle(Phase<1>, Running& t, const State& s) const {
    if constexpr (Whole) {
      t.state.a1 = t.part.a1;
    } else {
      const bool t0 = (t.old0 == -INFINITY_F);
      const float t1 = t.old0 - t.new0;
      const float t2 = exp_fast(t1);
      const float t3 = t0 ? (0x1p+0f) : t2;
      const float t4 = s.a1 * t3;
      t.state.a1 = SumOp::apply(t4, t.part.a1);
    }
  }
  template <bool Vector> __device__ __forceinline__ void keep(Kept& kept, bool coalesced, const Row& row, int c, int first) const { copy_to_shared<half_t, 8, Vector, false, 4>(tile_smem + (0 + c * 1) * Config::kThreads + threadIdx.x, Config::kThreads, row.in0 + first * 1, -first * 1, (row.extent - first) * 1); }
  template <bool Vector, Reads Set> __device__ __forceinline__ void fetch(Words& words, const Row& row, int c, int first) const {
    if constexpr (Set == Reads::Folded) {
      load_shared(words.k0, tile_smem + (0 + c * 1) * Config::kThreads + threadIdx.x, Config::kThreads);
    } else {
      load_shared(words.k0, tile_smem + (0 + c * 1) * Config::kThreads + threadIdx.x, Config::kThreads);
    }
  }
  __device__ __forceinline__ void lift(Phase<0>, Running& t, const Kept& kept, const Words& words, const Row& row, int first, int v) const {
    const long long at = row.begin + first + v;
    t.part.a0 = MaxOp::apply(t.part.a0, pick<half_t>(words.k0, v));
  }
  __device__ __forceinline__ void lift(Phase<1>, Running& t, const Kept& kept, const Words& words, const Row& row, int first, int v) const {
    const long long at = row.begin + first + v;
    const bool t0 = (t.new0 == -INFINITY_F);
    const float t1 = t0 ? (0x0p+0f) : t.new0;
    const float t2 = pick<half_t>(words.k0, v) - t1;
    const float t3 = exp_fast(t2);
    t.part.a1 = SumOp::apply(t.part.a1, t3);
  }
  __device__ __forceinline__ Tail finish(const State& s, const Row& row) const {
    Tail tail;
    const bool t0 = (s.a0 == -INFINITY_F);
    const float t1 = t0 ? INFINITY_F : (0x1p+0f);
    const float t2 = s.a1 * t1;
    tail.r0 = s.a0;
    tail.r1 = t2;
    tail.by1 = divisor_of(tail.r1);
    return tail;
  }
  template <int Lanes> __device__ __forceinline__ void write_rows(const Row& row, const Tail& tail, int lane) const {}
  template <bool Vector> __device__ __forceinline__ void map(Values& y, const Kept& kept, const Words& words, const Row& row, const Tail& tail, int first, int v) const {
    const long long at = row.begin + first + v;
    const float t0 = pick<half_t>(words.k0, v) - tail.r0;
    const float t1 = exp_fast(t0);
    const float t2 = divide(t1, tail.by1);
    y.y0[v] = t2;
  }
  template <bool Vector> __device__ __forceinline__ void put(const Values& y, const Row& row, int first) const { store_words<kWidth, Vector>(p0 + row.b0 + row.begin + first, y.y0, -first, row.extent - first); }
};
extern "C" __global__ void __launch_bounds__(128) row_resident_max_sum_f16_4473956d(half_t* p0, const half_t* __restrict__ p1) {
  ptx_launch_dependents();
  ptx_await_launches_together();
  const RowMemory<State, void> memory{nullptr, nullptr, nullptr};
  const Form form{p0, p1};
  fold_rows<Config>(form, memory, 8192ll, 1024ll, 0, nullptr, nullptr, aligned(p0) && aligned(p1));
}
