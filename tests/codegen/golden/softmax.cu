// streaming over j<1024 for [i0<8192]
//   reference 0 = A0  (after 1)
//   A0[] (plain) <- max float32(%0[i0,j])
//   A1[] (rescaled) <- sum exp(float32(%0[i0,j]) - select(isneginf(new0),0,new0)), moved by A1*select(isneginf(old0),1,exp(old0 - new0))
//   d0 = A0
//   d1 = A1*select(isneginf(A0),inf,1)
//   %1[i0<8192, j<1024] = float16(exp(float32(%0[i0,j]) - d0)/d1)
#include "ptx.cuh"
#include "math.cuh"
#include "types.cuh"
#include "reduce.cuh"
#include "rows.cuh"
struct State {
  alignas(8) float a0;
  alignas(8) float a1;
};
extern "C" __global__ void __launch_bounds__(128) row_resident_max_sum_f16_5960f773(const half_t* __restrict__ p0, half_t* __restrict__ p1) {
  extern __shared__ __align__(128) uint4 tile_smem[];
  if (aligned(p0) && aligned(p1)) {
    constexpr bool kVector = true;
    const long long row = min_of(blockIdx.x * 4ll + threadIdx.x / 32, 8192ll - 1);
    const int lane = threadIdx.x % 32;
    const long long begin = 0;
    const int extent = static_cast<int>(1024ll);
    const long long t0 = 1024ll * row;
    const half_t* in0 = p0 + (t0 + begin * 1);
    uint4* smem0 = tile_smem + 0 + threadIdx.x;
    const int shift = kVector ? 0 : misalignment<8>(in0, 1024 - extent);
    auto identity = [] {
      State s;
      s.a0 = (-INFINITY_F);
      s.a1 = float(0);
      return s;
    };
    auto merged32 = [&](State s) {
      constexpr int kLanes = 32;
      const State u = s;
      State t;
      float old0;
      {
        old0 = s.a0;
      }
      float new0;
      t.a0 = lanes_reduce<MaxOp, kLanes>(s.a0);
      {
        new0 = t.a0;
      }
      {
        const bool t1 = (old0 == -INFINITY_F);
        const float t2 = old0 - new0;
        const float t3 = exp_fast(t2);
        const float t4 = t1 ? (0x1p+0f) : t3;
        const float t5 = u.a1 * t4;
        s.a1 = t5;
      }
      t.a1 = lanes_reduce<SumOp, kLanes>(s.a1);
      return t;
    };
    State s = identity();
    constexpr int tile = 0;
    State t;
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const int first = tile + c * 256 + lane * 8 - shift;
      if (!(kVector || first < extent)) break;
      copy_to_shared<half_t, 8, kVector, false, 4>(smem0 + c * 128, 128, in0 + first * 1, -first * 1, (extent - first) * 1);
    }
    ptx_copy_commit();
    ptx_copy_wait<0>();
    float new0;
    float part0 = (-INFINITY_F);
#pragma unroll (kVector ? 2 : 1)
    for (int c = 0; c < 4; ++c) {
      const int first = tile + c * 256 + lane * 8 - shift;
      if (!(kVector || first < extent)) break;
      unsigned g0[4];
      load_shared(g0, smem0 + c * 128, 128);
#pragma unroll
      for (int v = 0; v < 8; ++v) {
        if (kVector || (first + v >= 0 && first + v < extent)) {
          const long long at = begin + first + v;
          part0 = MaxOp::apply(part0, pick<half_t>(g0, v));
        }
      }
    }
    t.a0 = part0;
    {
      new0 = t.a0;
    }
    float part1 = float(0);
    const bool t6 = (new0 == -INFINITY_F);
    const float t7 = t6 ? (0x0p+0f) : new0;
#pragma unroll (kVector ? 2 : 1)
    for (int c = 0; c < 4; ++c) {
      const int first = tile + c * 256 + lane * 8 - shift;
      if (!(kVector || first < extent)) break;
      unsigned g0[4];
      load_shared(g0, smem0 + c * 128, 128);
#pragma unroll
      for (int v = 0; v < 8; ++v) {
        if (kVector || (first + v >= 0 && first + v < extent)) {
          const long long at = begin + first + v;
          const float t8 = pick<half_t>(g0, v) - t7;
          const float t9 = exp_fast(t8);
          part1 = SumOp::apply(part1, t9);
        }
      }
    }
    t.a1 = part1;
    s = t;

    s = merged32(s);
    const bool t10 = (s.a0 == -INFINITY_F);
    const float t11 = t10 ? INFINITY_F : (0x1p+0f);
    const float t12 = s.a1 * t11;
    const Divisor by0 = divisor_of(t12);
#pragma unroll (kVector ? 2 : 1)
    for (int c = 0; c < 4; ++c) {
      const int first = tile + c * 256 + lane * 8 - shift;
      if (!(kVector || first < extent)) break;
      float y0[8];
      unsigned g0[4];
      load_shared(g0, smem0 + c * 128, 128);
#pragma unroll
      for (int v = 0; v < 8; ++v) {
        if (kVector || (first + v >= 0 && first + v < extent)) {
          const long long at = begin + first + v;
          const float t13 = pick<half_t>(g0, v) - s.a0;
          const float t14 = exp_fast(t13);
          const float t15 = divide(t14, by0);
          y0[v] = t15;
        }
      }
      store_words<8, kVector>(p1 + t0 + begin + first, y0, -first, extent - first);
    }

  } else {
    constexpr bool kVector = false;
    const long long row = min_of(blockIdx.x * 4ll + threadIdx.x / 32, 8192ll - 1);
    const int lane = threadIdx.x % 32;
    const long long begin = 0;
    const int extent = static_cast<int>(1024ll);
    const long long t0 = 1024ll * row;
    const half_t* in0 = p0 + (t0 + begin * 1);
    uint4* smem0 = tile_smem + 0 + threadIdx.x;
    const int shift = kVector ? 0 : misalignment<8>(in0, 1024 - extent);
    auto identity = [] {
      State s;
      s.a0 = (-INFINITY_F);
      s.a1 = float(0);
      return s;
    };
    auto merged32 = [&](State s) {
      constexpr int kLanes = 32;
      const State u = s;
      State t;
      float old0;
      {
        old0 = s.a0;
      }
      float new0;
      t.a0 = lanes_reduce<MaxOp, kLanes>(s.a0);
      {
        new0 = t.a0;
      }
      {
        const bool t1 = (old0 == -INFINITY_F);
        const float t2 = old0 - new0;
        const float t3 = exp_fast(t2);
        const float t4 = t1 ? (0x1p+0f) : t3;
        const float t5 = u.a1 * t4;
        s.a1 = t5;
      }
      t.a1 = lanes_reduce<SumOp, kLanes>(s.a1);
      return t;
    };
    State s = identity();
    constexpr int tile = 0;
    State t;
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const int first = tile + c * 256 + lane * 8 - shift;
      if (!(kVector || first < extent)) break;
      copy_to_shared<half_t, 8, kVector, false, 4>(smem0 + c * 128, 128, in0 + first * 1, -first * 1, (extent - first) * 1);
    }
    ptx_copy_commit();
    ptx_copy_wait<0>();
    float new0;
    float part0 = (-INFINITY_F);
#pragma unroll (kVector ? 2 : 1)
    for (int c = 0; c < 4; ++c) {
      const int first = tile + c * 256 + lane * 8 - shift;
      if (!(kVector || first < extent)) break;
      unsigned g0[4];
      load_shared(g0, smem0 + c * 128, 128);
#pragma unroll
      for (int v = 0; v < 8; ++v) {
        if (kVector || (first + v >= 0 && first + v < extent)) {
          const long long at = begin + first + v;
          part0 = MaxOp::apply(part0, pick<half_t>(g0, v));
        }
      }
    }
    t.a0 = part0;
    {
      new0 = t.a0;
    }
    float part1 = float(0);
    const bool t6 = (new0 == -INFINITY_F);
    const float t7 = t6 ? (0x0p+0f) : new0;
#pragma unroll (kVector ? 2 : 1)
    for (int c = 0; c < 4; ++c) {
      const int first = tile + c * 256 + lane * 8 - shift;
      if (!(kVector || first < extent)) break;
      unsigned g0[4];
      load_shared(g0, smem0 + c * 128, 128);
#pragma unroll
      for (int v = 0; v < 8; ++v) {
        if (kVector || (first + v >= 0 && first + v < extent)) {
          const long long at = begin + first + v;
          const float t8 = pick<half_t>(g0, v) - t7;
          const float t9 = exp_fast(t8);
          part1 = SumOp::apply(part1, t9);
        }
      }
    }
    t.a1 = part1;
    s = t;

    s = merged32(s);
    const bool t10 = (s.a0 == -INFINITY_F);
    const float t11 = t10 ? INFINITY_F : (0x1p+0f);
    const float t12 = s.a1 * t11;
    const Divisor by0 = divisor_of(t12);
#pragma unroll (kVector ? 2 : 1)
    for (int c = 0; c < 4; ++c) {
      const int first = tile + c * 256 + lane * 8 - shift;
      if (!(kVector || first < extent)) break;
      float y0[8];
      unsigned g0[4];
      load_shared(g0, smem0 + c * 128, 128);
#pragma unroll
      for (int v = 0; v < 8; ++v) {
        if (kVector || (first + v >= 0 && first + v < extent)) {
          const long long at = begin + first + v;
          const float t13 = pick<half_t>(g0, v) - s.a0;
          const float t14 = exp_fast(t13);
          const float t15 = divide(t14, by0);
          y0[v] = t15;
        }
      }
      store_words<8, kVector>(p1 + t0 + begin + first, y0, -first, extent - first);
    }

  }
}
