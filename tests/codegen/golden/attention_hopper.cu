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
#include "device/attention/split_merge.cuh"
#include "device/key_tiles.cuh"
#include "device/attention.cuh"
#include "device/split.cuh"
struct Config {
  static constexpr int kRows = 16, kThreads = 256, kWarps = 8, kSegments = 1;
};
struct State {
  float a0;
  float a1;
  float r0;
};
struct Form {
  using State = ::State;
  static constexpr int kColumns = 64;
  struct Row {
    long long line;
    long long c0;
    long long c1;
  };
  struct Tail {
    float d0;
    float d1;
  };
  const half_t* __restrict__ p0;
  float* __restrict__ p1;
  half_t* __restrict__ p2;
  __device__ __forceinline__ Row row_of(long long other, long long line) const {
    Row row;
    row.line = line;
    const long long q0 = floor_div(other, 4ll), c0 = other - q0 * 4ll;
    row.c0 = q0;
    row.c1 = c0;
    return row;
  }
  static constexpr int kScalars = 2;
  __device__ __forceinline__ State identity(const Row& row) const {
    State s;
    s.a0 = (-INFINITY_F);
    s.a1 = float(0);
    {
      s.r0 = s.a0;
    }
    return s;
  }
  __device__ __forceinline__ void add(Scalar<0>, State& to, const State& part, const Row& row) const {
    to.a0 = MaxOp::apply(part.a0, to.a0);
  }
  __device__ __forceinline__ void settle(Scalar<0>, State& to, const Row& row) const {
    {
      to.r0 = to.a0;
    }
  }
  __device__ __forceinline__ void add(Scalar<1>, State& to, const State& part, const Row& row) const {
    float moved1;
    {
      const bool t0 = (part.r0 == -INFINITY_F);
      const float t1 = part.r0 - to.r0;
      const float t2 = exp_fast(t1);
      const float t3 = t0 ? (0x1p+0f) : t2;
      const float t4 = part.a1 * t3;
      moved1 = t4;
    }
    to.a1 = SumOp::apply(moved1, to.a1);
  }
  __device__ __forceinline__ void settle(Scalar<1>, State& to, const Row& row) const {
  }
  template <int N>
  __device__ __forceinline__ void move(float (&values)[N], const State& from, const State& to, const Row& row) const {
    {
      const bool t0 = (from.r0 == -INFINITY_F);
      const float t1 = from.r0 - to.r0;
      const float t2 = exp_fast(t1);
      const float t3 = t0 ? (0x1p+0f) : t2;
#pragma unroll
      for (int e = 0; e < N; ++e) {
        const float t4 = values[e] * t3;
        values[e] = t4;
      }
    }
  }
  __device__ __forceinline__ Tail finish(const State& s, const Row& row) const {
    Tail tail;
    tail.d0 = s.a0;
    const bool t0 = (s.a0 == -INFINITY_F);
    const float t1 = t0 ? INFINITY_F : (0x1p+0f);
    const float t2 = s.a1 * t1;
    tail.d1 = t2;
    return tail;
  }
  __device__ __forceinline__ void write(const float (&values)[4], const State& s, const Row& row, const Tail& tail, int first, bool exists) const {
    const bool t0 = (s.a0 == -INFINITY_F);
    const float t1 = t0 ? INFINITY_F : (0x1p+0f);
    const Divisor by0 = divisor_of(tail.d1);
    const long long t4 = 65536ll * row.c0;
    const long long t5 = 16384ll * row.c1;
    const long long t6 = 64ll * row.line;
    {
      float four[4];
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const long long column = first + e;
        const float t2 = values[e] * t1;
        const float t3 = divide(t2, by0);
        four[e] = t3;
      }
      const long long t7 = t4 + t5 + t6 + first;
      store_group<4>(p2, t7, four, exists ? 64 - first : 0, aligned(p2));
    }
  }
};
extern "C" __global__ void __launch_bounds__(256, 1) attention_split_max_sum_dot_f16_f8fb88d9(const __grid_constant__ TensorMap m0, const __grid_constant__ TensorMap m1, const half_t* __restrict__ p0, float* __restrict__ p1, half_t* __restrict__ p2, unsigned* counter) {
  ptx_launch_dependents();
  const unsigned segments = static_cast<unsigned>(1ll), row_tiles = static_cast<unsigned>(16ll);
  const unsigned group = blockIdx.x / segments, segment = blockIdx.x - group * segments;
  const long long other = group / row_tiles, first_row = (group % row_tiles) * 16ll;
  const int warp = __shfl_sync(0xffffffffu, threadIdx.x >> 5, 0), lane = threadIdx.x & 31, quad = lane >> 2, pair = (lane & 3) * 2;
  const long long own_row = first_row + quad;
  const long long q0 = floor_div(other, 4ll), c0 = other - q0 * 4ll;
  const int tiles = (256 + 15) / 16;
  const int own_tiles = (tiles + static_cast<int>(segments) - 1) / static_cast<int>(segments), start = static_cast<int>(segment) * own_tiles, stop = min(tiles, start + own_tiles), own_first = start + warp;
  extern __shared__ __align__(16) char memory[];
  const unsigned base = (ptx_shared_address(memory) + 1023) / 1024 * 1024;
  float* const block_states = reinterpret_cast<float*>(memory + (base - ptx_shared_address(memory)));
  const unsigned k_tiles = base + warp * 12288, v_tiles = k_tiles + 6144, barriers = base + 98304 + warp * 24;
  const int c1 = static_cast<int>(q0);
  const int c2 = static_cast<int>(c0);
  const int c3 = static_cast<int>(q0);
  const int c4 = static_cast<int>(c0);
  const auto load_keys = [&](int tile, int stage) {
    const int from = static_cast<int>((tile) * 16ll);
    const unsigned full = barriers + stage * 8;
    ptx_barrier_expect(full, 4096);
    ptx_copy_box(k_tiles + stage * 2048 + 0, m0, full, 0, from, c1, c2);
    ptx_copy_box(v_tiles + stage * 2048 + 0, m1, full, 0, from, c3, c4);
  };
  if (ptx_elect()) {
    ptx_prefetch_map(m0);
    ptx_prefetch_map(m1);
#pragma unroll
    for (int i = 0; i < 3; ++i) ptx_barrier_init(barriers + i * 8, 1);
    ptx_barrier_init_fence();
#pragma unroll 1
    for (int i = 0; i < 3; ++i) {
      const int tile = own_first + i * 8;
      if (tile < stop) load_keys(tile, i);
    }
  }
  __syncwarp();
  const long long t0 = 65536ll * q0;
  const long long t1 = 16384ll * c0;
  const half_t* const q_data = p0;
  const auto q_at = [&](long long line, long long e) {
    (void)line;
    const long long t2 = 64ll * (first_row + line);
    const long long t3 = e + t0 + t1 + t2;
    return t3;
  };
  const bool q_vector = aligned(p0);
  unsigned q[4][4];
  load_query<64, 2>(q, q_data, q_at, 256ll - first_row, 64, q_vector);
  float a0[2] = {(-INFINITY_F), (-INFINITY_F)};
  float a1[2] = {float(0), float(0)};
  float o[8][4] = {};
  float r0[2];
  {
    r0[0] = r0[1] = (-INFINITY_F);

  }
  long long folded = 0;
  int stage = 0;
  unsigned parity = 0;
  for (int tile = own_first; tile < stop; tile += 8) {
    await_copies(barriers + stage * 8, parity);
    __syncwarp();
    const long long first = (tile) * 16ll;
    const int valid = static_cast<int>(min_of(256ll - first, 16ll));
    float s[2][4], p[2][4];
    float kept0[2][4];
    score_product<64, 16>(s, q, k_tiles + stage * 2048, half_t{});
    float b0[2];
    float b1[2];
    float w0[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const long long row = min_of(own_row + h * 8, 256ll - 1);
      float t0_tile = (-INFINITY_F);
#pragma unroll
      for (int n = 0; n < 2; ++n) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const int x = h * 2 + e, offset = n * 8 + pair + e;
          const long long at = min_of(first + offset, 256ll - 1);
          kept0[n][x] = s[n][x];
          if (offset < valid) t0_tile = MaxOp::apply(t0_tile, s[n][x]);
        }
      }
      {
        b0[h] = MaxOp::apply(a0[h], quad_reduce<MaxOp>(t0_tile));
      }
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      w0[h] = b0[h];
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const long long row = min_of(own_row + h * 8, 256ll - 1);
      float t1_tile = float(0);
      const bool t4 = (w0[h] == -INFINITY_F);
      const float t5 = t4 ? (0x0p+0f) : w0[h];
#pragma unroll
      for (int n = 0; n < 2; ++n) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const int x = h * 2 + e, offset = n * 8 + pair + e;
          const long long at = min_of(first + offset, 256ll - 1);
          const float t6 = kept0[n][x] - t5;
          const float t7 = exp_fast(t6);
          if (offset < valid) t1_tile = SumOp::apply(t1_tile, t7);
          p[n][x] = offset < valid ? t7 : 0.0f;
        }
      }
      {
        const bool t8 = (r0[h] == -INFINITY_F);
        const float t9 = r0[h] - w0[h];
        const float t10 = exp_fast(t9);
        const float t11 = t8 ? (0x1p+0f) : t10;
        const float t12 = a1[h] * t11;
        b1[h] = SumOp::apply(t12, quad_reduce<SumOp>(t1_tile));
      }
      if (!__all_sync(0xffffffffu, r0[h] == w0[h])) {
        const bool t13 = (r0[h] == -INFINITY_F);
        const float t14 = r0[h] - w0[h];
        const float t15 = exp_fast(t14);
        const float t16 = t13 ? (0x1p+0f) : t15;
#pragma unroll
        for (int n = 0; n < 8; ++n) {
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            const int x = h * 2 + e;
            const float t17 = o[n][x] * t16;
            o[n][x] = t17;
          }
        }
      }
    }
    value_product<64, 16>(o, p, v_tiles + stage * 2048, half_t{});
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      a0[h] = b0[h];
      a1[h] = b1[h];
      r0[h] = w0[h];
    }
    folded += valid;
    __syncwarp();
    const int next = tile + 24;
    if (next < stop && ptx_elect()) load_keys(next, stage);
    if (++stage == 3) {
      stage = 0;
      parity ^= 1;
    }
  }
  State own[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    own[h].a0 = a0[h];
    own[h].a1 = a1[h];
    own[h].r0 = r0[h];
  }
  finish_split<Config>(Form{p0, p1, p2}, own, o, block_states, reinterpret_cast<float*>(p1), counter, {other, first_row, 256ll, group, segments});
}
