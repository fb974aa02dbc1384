// streaming over j<1024 for [i0<2, i1<16, i2<1024]
//   reference 0 = A0  (after 1)
//   A0[] (plain) <- max float32(sum_r1<512(%0[i0,i1,i2,r1]*%1[i0,i1,j,r1]))
//   A1[] (rescaled) <- sum exp(float32(sum_r1<512(%0[i0,i1,i2,r1]*%1[i0,i1,j,r1])) - select(isneginf(new0),0,new0)), moved by A1*select(isneginf(old0),1,exp(old0 - new0))
//   A2[i3<512] (rescaled) <- sum exp(float32(sum_r1<512(%0[i0,i1,i2,r1]*%1[i0,i1,j,r1])) - select(isneginf(new0),0,new0))*float32(%2[i0,i1,j,i3]), moved by A2*select(isneginf(old0),1,exp(old0 - new0))
//   d0 = A0
//   d1 = A1*select(isneginf(A0),inf,1)
//   d2 = (A2*select(isneginf(A0),inf,1))/d1
//   %3[i0<2, i1<16, i2<1024, i3<512] = d2
#include "device/types.cuh"
#include "device/reduce.cuh"
#include "device/attention/large_head_loop.cuh"
struct Config {
  using T = half_t;
  static constexpr int kKeys = 64, kKeyStages = 1, kValueStages = 1, kValueSlab = 0;
  static constexpr int kPartSlabs = 3, kScorers = 2, kCluster = 1;
  static constexpr bool kSegmented = false;
  static constexpr int kDepth = 512, kColumns = 512, kGroupColumns = 256, kShared = 207472;
};
struct Form : PlainScores {
  static constexpr int kColumns = 512;
  struct State { float a0, a1, r0; };
  struct Row { long long line, c0, c1; };
  struct Tail { float d1; };
  half_t* __restrict__ p0;
  __device__ __forceinline__ void set_line(Row& row, long long line) const { row.line = line; }
  __device__ __forceinline__ Row row_of(long long other, long long line) const {
    const long long q0 = floor_div(other, 16ll), c0 = other - q0 * 16ll;
    return {line, q0, c0};
  }
  __device__ __forceinline__ State identity(const Row& row) const {
    State s;
    s.a0 = (-INFINITY_F);
    s.a1 = float(0);
    s.r0 = s.a0;
    return s;
  }
  static constexpr int kPhases = 2;
  static constexpr bool kStarts = false, kMoves = true;
  static constexpr bool kEven = true, kAlwaysWhole = true;
  __device__ __forceinline__ void lift(Scores<true>, Phase<0>, State& part, float& s, const Pair& pair, const State& to, const Row& row, const KeyPlace& at) const { part.a0 = MaxOp::apply(part.a0, s); }
  __device__ __forceinline__ void reduce(Scores<true>, Phase<0>, State& part, const State& other) const { part.a0 = quad_reduce<MaxOp>(MaxOp::apply(part.a0, other.a0)); }
  __device__ __forceinline__ void lift(Scores<true>, Phase<1>, State& part, float& s, const Pair& pair, const State& to, const Row& row, const KeyPlace& at) const {
    const bool t0 = (to.r0 == -INFINITY_F);
    const float t1 = t0 ? (0x0p+0f) : to.r0;
    const float shift0 = t1 * (-0x1.715476p+0f);
    const float power0 = ptx_exp2(fmaf(s, (0x1.715476p+0f), shift0));
    part.a1 = SumOp::apply(part.a1, power0);
    s = power0;
  }
  __device__ __forceinline__ void reduce(Scores<true>, Phase<1>, State& part, const State& other) const { part.a1 = SumOp::apply(part.a1, other.a1); }
  __device__ __forceinline__ void settle(Phase<0>, State& to, const State& from, const State& part, const Row& row) const {
    to.a0 = MaxOp::apply(from.a0, part.a0);
    to.r0 = to.a0;
  }
  __device__ __forceinline__ void settle(Phase<1>, State& to, const State& from, const State& part, const Row& row) const {
    const float t0 = exp_fast(from.r0 - to.r0);
    to.a1 = SumOp::apply(from.a1 * ((from.r0 == -INFINITY_F) ? (0x1p+0f) : t0), part.a1);
  }
  __device__ __forceinline__ static void join_lanes(State& s) { s.a1 = quad_reduce<SumOp>(s.a1); }
  __device__ __forceinline__ static bool same(const State& a, const State& b) { return a.r0 == b.r0; }
  __device__ __forceinline__ auto visited(const Row& row, long long first, long long last) const { return TileRange{0, (1024 + 63) / 64}; }
  __device__ __forceinline__ void copy_query(unsigned to, const TensorMap& map, unsigned barrier, int column, int from, const Row& row) const { ptx_copy_box(to, map, barrier, column, from, static_cast<int>(row.c0), static_cast<int>(row.c1)); }
  __device__ __forceinline__ void copy_key(unsigned to, const TensorMap& map, unsigned barrier, int column, int from, const Row& row) const { ptx_copy_box(to, map, barrier, column, from, static_cast<int>(row.c0), static_cast<int>(row.c1)); }
  __device__ __forceinline__ void copy_value(unsigned to, const TensorMap& map, unsigned barrier, int column, int from, const Row& row) const { ptx_copy_box(to, map, barrier, column, from, static_cast<int>(row.c0), static_cast<int>(row.c1)); }
  __device__ __forceinline__ bool aligned_outputs() const { return aligned(p0); }
  static __device__ constexpr bool exchanges(Phase<0>) { return true; }
  template <typename S, typename V> __device__ __forceinline__ static void each(Phase<0>, S& s, const V& visit) { visit(s.a0, 0, MaxOp{}); }
  static __device__ constexpr bool exchanges(Phase<1>) { return false; }
  static __device__ constexpr bool exchanges(Rest) { return true; }
  template <typename S, typename V> __device__ __forceinline__ static void each(Rest, S& s, const V& visit) { visit(s.a1, 1, SumOp{}); }
  template <typename S, typename V> __device__ __forceinline__ static void each(Scalars, S& s, const V& visit) {
    visit(s.a0, 0, MaxOp{});
    visit(s.a1, 1, SumOp{});
  }
  template <typename S, typename V> __device__ __forceinline__ static void each(References, S& s, const V& visit) { visit(s.r0, 0, Replace{}); }
  static constexpr int kScalarPlaces = 3;
  static constexpr bool kExchanges = true;
  static constexpr int kScalars = 2;
  __device__ __forceinline__ void add(Scalar<0>, State& to, const State& part, const Row& row) const { to.a0 = MaxOp::apply(part.a0, to.a0); }
  __device__ __forceinline__ void settle(Scalar<0>, State& to, const Row& row) const { to.r0 = to.a0; }
  __device__ __forceinline__ void add(Scalar<1>, State& to, const State& part, const Row& row) const {
    const float t0 = exp_fast(part.r0 - to.r0);
    to.a1 = SumOp::apply(part.a1 * ((part.r0 == -INFINITY_F) ? (0x1p+0f) : t0), to.a1);
  }
  __device__ __forceinline__ void settle(Scalar<1>, State& to, const Row& row) const {}
  template <int N> __device__ __forceinline__ void move(float (&values)[N], const State& from, const State& to, const Row& row) const {
    const float t0 = exp_fast(from.r0 - to.r0);
    const float t1 = ((from.r0 == -INFINITY_F) ? (0x1p+0f) : t0);
    each_value(values, [&](float& value) { value = value * t1; });
  }
  __device__ __forceinline__ Tail finish(const State& s, const Row& row) const { return {(s.a1 * ((s.a0 == -INFINITY_F) ? INFINITY_F : (0x1p+0f)))}; }
  template <int N> __device__ __forceinline__ void write(const float (&values)[N], const State& s, const Row& row, const Tail& tail, int first, bool exists) const {
    const long long t0 = (8388608ll * row.c0) + (524288ll * row.c1) + (512ll * row.line);
    const float t1 = (s.a0 == -INFINITY_F) ? INFINITY_F : (0x1p+0f);
    const float t2 = (1 / tail.d1);
    const Group<N> group{first, exists ? 512 - first : 0, 512ll, aligned(p0)};
    auto y0 = group.values(p0);
    group.each([&](int v, long long at) { y0[v] = (values[v] * t1) * t2; });
    group.store(p0, t0, y0);
  }
};
extern "C" __global__ void __launch_bounds__(384, 1) attention_wide_max_sum_dot_f16_3c788f1b(const __grid_constant__ TensorMap m0, const __grid_constant__ TensorMap m1, const __grid_constant__ TensorMap m2, half_t* __restrict__ p0) {
  ptx_launch_dependents();
  const Form form = Form{{}, p0};
  large_head_attention<Config>(form, {m0, m1, m2}, {1, 16, nullptr}, 1024ll, 1024ll);
}
