// streaming over j<256 for [i0<2, i1<4, i2<256]
//   reference 0 = A0  (after 1)
//   A0[] (plain) <- max sum_r1<64(%0[i0,i1,i2,r1]*%1[i0,i1,j,r1])
//   A1[] (rescaled) <- sum exp(sum_r1<64(%0[i0,i1,i2,r1]*%1[i0,i1,j,r1]) - select(isneginf(new0),0,new0)), moved by A1*select(isneginf(old0),1,exp(old0 - new0))
//   A2[i3<64] (rescaled) <- sum exp(sum_r1<64(%0[i0,i1,i2,r1]*%1[i0,i1,j,r1]) - select(isneginf(new0),0,new0))*%2[i0,i1,j,i3], moved by A2*select(isneginf(old0),1,exp(old0 - new0))
//   d0 = A0
//   d1 = A1*select(isneginf(A0),inf,1)
//   d2 = (A2*select(isneginf(A0),inf,1))/d1
//   %3[i0<2, i1<4, i2<256, i3<64] = d2
#include "ptx.cuh"
#include "math.cuh"
#include "types.cuh"
#include "reduce.cuh"
#include "key_tiles.cuh"
#include "attention.cuh"
#include "attention_parts.cuh"
extern "C" __global__ void __launch_bounds__(128) attention_max_sum_dot_f32_08aac3da(const float* __restrict__ p0, const float* __restrict__ p1, const float* __restrict__ p2, float* __restrict__ p3) {
  const long long other = floor_div(blockIdx.x, 4ll), first_row = (blockIdx.x - other * 4ll) * 64;
  const int warp = threadIdx.x >> 5, quad = (threadIdx.x & 31) >> 2, pair = (threadIdx.x & 3) * 2;
  const long long own_row = first_row + warp * 16 + quad;
  const long long q0 = floor_div(other, 4ll), c0 = other - q0 * 4ll;
  const int tiles = (256 + 63) / 64;
  extern __shared__ __align__(16) char memory[];
  float* const q_tile = reinterpret_cast<float*>(memory);
  float* const k_tiles = reinterpret_cast<float*>(memory + 18432);
  float* const v_tiles = reinterpret_cast<float*>(memory + 55296);
  float* const staged = reinterpret_cast<float*>(memory + 90112 + warp * 0);
  const long long t0 = 65536ll * q0;
  const long long t1 = 16384ll * c0;
  const float* const q_data = p0;
  const auto q_at = [&](long long line, long long e) {
    (void)line;
    const long long t2 = 64ll * (first_row + line);
    const long long t3 = e + t0 + t1 + t2;
    return t3;
  };
  const bool q_vector = aligned(p0);
  const float* const k_data = p1;
  const auto k_at = [&](long long line, long long e) {
    (void)line;
    const long long t4 = 64ll * line;
    const long long t5 = e + t0 + t1 + t4;
    return t5;
  };
  const bool k_vector = aligned(p1);
  const float* const v_data = p2;
  const auto v_at = [&](long long line, long long e) {
    (void)line;
    const long long t6 = 64ll * line;
    const long long t7 = t0 + t1 + e + t6;
    return t7;
  };
  const bool v_vector = aligned(p2);
  load_tile<64, 64, 128, 32>(q_tile, q_data, q_at, 256ll - first_row, 64, q_vector, threadIdx.x);
  const auto load_keys = [&](long long from, int stage) {
    load_tile<64, 64, 128, 32>(k_tiles + stage * 4608, k_data, [&](long long line, long long e) { return k_at(from + line, e); }, 256ll - from, 64, k_vector, threadIdx.x);
    load_tile<64, 64, 128, 16>(v_tiles + stage * 4352, v_data, [&](long long line, long long e) { return v_at(from + line, e); }, 256ll - from, 64, v_vector, threadIdx.x);
    ptx_copy_commit();
  };
  float a0[2] = {(-INFINITY_F), (-INFINITY_F)};
  float a1[2] = {float(0), float(0)};
  float o[8][4] = {};
  float r0[2];
  {
    r0[0] = r0[1] = (-INFINITY_F);

  }
  if (tiles > 0) load_keys((0) * 64ll, 0);
  long long folded = 0;
  int stage = 0;
  for (int tile = 0; tile < tiles; ++tile) {
    const long long first = (tile) * 64ll;
    if (tile + 1 < tiles) load_keys((tile + 1) * 64ll, stage ^ 1); else ptx_copy_commit();
    ptx_copy_wait<1>();
    __syncthreads();
    const int valid = static_cast<int>(min_of(256ll - first, 64ll));
    float s[8][4], p[8][4];
    float kept0[8][4];
    score_product_parts<64, 64>(s, q_tile + warp * 1152, k_tiles + stage * 4608);
    float b0[2];
    float b1[2];
    float w0[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const long long row = min_of(own_row + h * 8, 256ll - 1);
      float t0_tile = (-INFINITY_F);
#pragma unroll
      for (int n = 0; n < 8; ++n) {
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
      const bool t8 = (w0[h] == -INFINITY_F);
      const float t9 = t8 ? (0x0p+0f) : w0[h];
#pragma unroll
      for (int n = 0; n < 8; ++n) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const int x = h * 2 + e, offset = n * 8 + pair + e;
          const long long at = min_of(first + offset, 256ll - 1);
          const float t10 = kept0[n][x] - t9;
          const float t11 = expf(t10);
          if (offset < valid) t1_tile = SumOp::apply(t1_tile, t11);
          p[n][x] = offset < valid ? t11 : 0.0f;
        }
      }
      {
        const bool t12 = (r0[h] == -INFINITY_F);
        const float t13 = r0[h] - w0[h];
        const float t14 = expf(t13);
        const float t15 = t12 ? (0x1p+0f) : t14;
        const float t16 = a1[h] * t15;
        b1[h] = SumOp::apply(t16, quad_reduce<SumOp>(t1_tile));
      }
      if (!__all_sync(0xffffffffu, r0[h] == w0[h])) {
        const bool t17 = (r0[h] == -INFINITY_F);
        const float t18 = r0[h] - w0[h];
        const float t19 = expf(t18);
        const float t20 = t17 ? (0x1p+0f) : t19;
#pragma unroll
        for (int n = 0; n < 8; ++n) {
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            const int x = h * 2 + e;
            const float t21 = o[n][x] * t20;
            o[n][x] = t21;
          }
        }
      }
    }
    value_product_parts<64, 64>(o, p, v_tiles + stage * 4352);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      a0[h] = b0[h];
      a1[h] = b1[h];
      r0[h] = w0[h];
    }
    folded += valid;
    stage ^= 1;
    __syncthreads();
  }
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const long long row = min_of(own_row + h * 8, 256ll - 1);
    const bool exists = own_row + h * 8 < 256ll;
    const bool t22 = (a0[h] == -INFINITY_F);
    const float t23 = t22 ? INFINITY_F : (0x1p+0f);
    const float t24 = a1[h] * t23;
    const long long t27 = 64ll * row;
#pragma unroll
    for (int n = 0; n < 8; ++n) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const long long column = n * 8 + pair + e;
        const float value = o[n][h * 2 + e];
        const float t25 = value * t23;
        const float t26 = t25 / t24;
        const long long t28 = t0 + t1 + t27 + column;
        if (exists && column < 64) store(p3, t28, t26);
      }
    }
  }
}
