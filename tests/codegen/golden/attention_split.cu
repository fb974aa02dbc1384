// streaming over j<256 for [i0<2, i1<4, i2<256]
//   reference 0 = A0  (after 1)
//   A0[] (plain) <- max float32(sum_r1<64(%0[i0,i1,i2,r1]*%1[i0,i1,j,r1]))
//   A1[] (rescaled) <- sum exp(float32(sum_r1<64(%0[i0,i1,i2,r1]*%1[i0,i1,j,r1])) - select(isneginf(new0),0,new0)), moved by A1*select(isneginf(old0),1,exp(old0 - new0))
//   A2[i3<64] (rescaled) <- sum exp(float32(sum_r1<64(%0[i0,i1,i2,r1]*%1[i0,i1,j,r1])) - select(isneginf(new0),0,new0))*float32(%2[i0,i1,j,i3]), moved by A2*select(isneginf(old0),1,exp(old0 - new0))
//   d0 = A0
//   d1 = A1*select(isneginf(A0),inf,1)
//   d2 = (A2*select(isneginf(A0),inf,1))/d1
//   %3[i0<2, i1<4, i2<256, i3<64] = d2
#include "device/types.cuh"
#include "device/reduce.cuh"
#include "device/attention/split_boxes.cuh"
struct Config {
  static constexpr int kRows = 16, kThreads = 256, kWarps = 8, kStages = 2;
  static constexpr int kSegments = 1, kShared = 132224;
  static constexpr int kDepth = 64, kColumns = 64, kKeys = 32, kHalves = 2;
  static constexpr Products kScores = Products::Native, kValues = Products::Native;
};
struct Form {
  static constexpr int kColumns = 64;
  struct State { float a0, a1, r0; };
  struct Row { long long line, c0, c1; };
  struct Tail { float d1; };
  half_t* p0;
  __device__ __forceinline__ void set_line(Row& row, long long line) const { row.line = line; }
  __device__ __forceinline__ Row row_of(long long other, long long line) const {
    const long long q0 = floor_div(other, 4ll), c0 = other - q0 * 4ll;
    return {line, q0, c0};
  }
  __device__ __forceinline__ State identity(const Row& row) const {
    State s;
    s.a0 = (-INFINITY_F);
    s.a1 = float(0);
    s.r0 = s.a0;
    return s;
  }
  static constexpr int kPhases = 2, kValuePhase = 1, kKept = 0;
  static constexpr bool kStarts = false, kMoves = true;
  __device__ __forceinline__ long long query(const Row& row, long long e) const { return e + (65536ll * row.c0) + (16384ll * row.c1) + (64ll * row.line); }
  __device__ __forceinline__ void copy_key(unsigned to, const TensorMap& map, unsigned barrier, int column, int from, const Row& row) const { ptx_copy_box(to, map, barrier, column, from, static_cast<int>(row.c0), static_cast<int>(row.c1)); }
  __device__ __forceinline__ void copy_value(unsigned to, const TensorMap& map, unsigned barrier, int column, int from, const Row& row) const { ptx_copy_box(to, map, barrier, column, from, static_cast<int>(row.c0), static_cast<int>(row.c1)); }
  __device__ __forceinline__ auto visited(const Row& row, long long first, long long last) const { return TileRange{0, (256 + 31) / 32}; }
  __device__ __forceinline__ void lift(Phase<0>, State& part, float& weight, Kept<0>& kept, float s, const State& to, const Row& row, long long at, bool exists) const { if (exists) part.a0 = MaxOp::apply(part.a0, s); }
  __device__ __forceinline__ void settle(Phase<0>, State& to, const State& from, const State& part, const Row& row) const {
    to.a0 = MaxOp::apply(from.a0, quad_reduce<MaxOp>(part.a0));
    to.r0 = to.a0;
  }
  __device__ __forceinline__ void lift(Phase<1>, State& part, float& weight, Kept<0>& kept, float s, const State& to, const Row& row, long long at, bool exists) const {
    const float t0 = ((to.r0 == -INFINITY_F) ? (0x0p+0f) : to.r0);
    const float t1 = exp_fast(s - t0);
    if (exists) part.a1 = SumOp::apply(part.a1, t1);
    weight = exists ? t1 : 0.0f;
  }
  __device__ __forceinline__ void settle(Phase<1>, State& to, const State& from, const State& part, const Row& row) const {
    const float t0 = exp_fast(from.r0 - to.r0);
    to.a1 = SumOp::apply(from.a1 * ((from.r0 == -INFINITY_F) ? (0x1p+0f) : t0), quad_reduce<SumOp>(part.a1));
  }
  __device__ __forceinline__ static bool same(const State& a, const State& b) { return a.r0 == b.r0; }
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
    const long long t0 = (65536ll * row.c0) + (16384ll * row.c1) + (64ll * row.line);
    const float t1 = (s.a0 == -INFINITY_F) ? INFINITY_F : (0x1p+0f);
    const Divisor by0 = divisor_of(tail.d1);
    const Group<N> group{first, exists ? 64 - first : 0, 64ll, aligned(p0)};
    auto y0 = group.values(p0);
    group.each([&](int v, long long at) { y0[v] = divide((values[v] * t1), by0); });
    group.store(p0, t0, y0);
  }
};
extern "C" __global__ void __launch_bounds__(256, 1) attention_split_max_sum_dot_f16_bc1c2d05(const __grid_constant__ TensorMap m0, const __grid_constant__ TensorMap m1, half_t* p0, const half_t* __restrict__ p1, float* p2, unsigned* counter) {
  ptx_launch_dependents();
  ptx_await_launches_together();
  const Form form = Form{p0};
  const SplitStates out = {reinterpret_cast<float*>(p2), counter, static_cast<unsigned>(1ll), static_cast<unsigned>(16ll)};
  split_kv<Config>(form, operand(p1, aligned(p1)), boxes<half_t>(m0), boxes<half_t>(m1), 256ll, 256ll, out);
}
