// streaming over j<256 for [i0<2, i1<4, i2<256]
//   reference 0 = A0  (after 1)
//   A0[] (plain) <- max sum_r1<64(%0[i0,i1,i2,r1]*%1[i0,i1,j,r1])
//   A1[] (rescaled) <- sum exp(sum_r1<64(%0[i0,i1,i2,r1]*%1[i0,i1,j,r1]) - select(isneginf(new0),0,new0)), moved by A1*select(isneginf(old0),1,exp(old0 - new0))
//   A2[i3<64] (rescaled) <- sum exp(sum_r1<64(%0[i0,i1,i2,r1]*%1[i0,i1,j,r1]) - select(isneginf(new0),0,new0))*%2[i0,i1,j,i3], moved by A2*select(isneginf(old0),1,exp(old0 - new0))
//   d0 = A0
//   d1 = A1*select(isneginf(A0),inf,1)
//   d2 = (A2*select(isneginf(A0),inf,1))/d1
//   %3[i0<2, i1<4, i2<256, i3<64] = d2
#include "device/types.cuh"
#include "device/reduce.cuh"
#include "device/ptx_split.cuh"
#include "device/key_tiles.cuh"
#include "device/states.cuh"
#include "device/attention.cuh"
#include "device/attention_parts.cuh"
extern "C" __global__ void __launch_bounds__(128, 2) attention_split_max_sum_dot_f32_374a4e81(const float* __restrict__ p0, const float* __restrict__ p1, const float* __restrict__ p2, float* __restrict__ p3, float* __restrict__ p4, unsigned* counter) {
  ptx_launch_dependents();
  const unsigned segments = static_cast<unsigned>(2ll), row_tiles = static_cast<unsigned>(16ll);
  const unsigned group = blockIdx.x / segments, segment = blockIdx.x - group * segments;
  const long long other = group / row_tiles, first_row = (group % row_tiles) * 16ll;
  const int warp = __shfl_sync(0xffffffffu, threadIdx.x >> 5, 0), lane = threadIdx.x & 31, quad = lane >> 2, pair = (lane & 3) * 2;
  const long long own_row = first_row + quad;
  const long long q0 = floor_div(other, 4ll), c0 = other - q0 * 4ll;
  const int tiles = (256 + 15) / 16;
  const int own_tiles = (tiles + static_cast<int>(segments) - 1) / static_cast<int>(segments), start = static_cast<int>(segment) * own_tiles, stop = min(tiles, start + own_tiles), own_first = start + warp;
  extern __shared__ __align__(16) char memory[];
  float* const block_states = reinterpret_cast<float*>(memory);
  float* const q_tile = reinterpret_cast<float*>(memory);
  float* const k_tiles = reinterpret_cast<float*>(memory + 4608 + warp * 26880);
  float* const v_tiles = reinterpret_cast<float*>(memory + 4608 + warp * 26880 + 13824);
  float* const staged = reinterpret_cast<float*>(memory + 4608 + warp * 26880 + 26880);
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
  load_tile<16, 64, 128, 32>(q_tile, q_data, q_at, 256ll - first_row, 64, q_vector, threadIdx.x);
  ptx_copy_commit();
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
  const auto load_keys = [&](int tile, int stage) {
    if (tile < stop) {
      const long long from = (tile) * 16ll;
      load_tile<16, 64, 32, 32>(k_tiles + stage * 1152, k_data, [&](long long line, long long e) { return k_at(from + line, e); }, 256ll - from, 64, k_vector, lane);
      load_tile<16, 64, 32, 16>(v_tiles + stage * 1088, v_data, [&](long long line, long long e) { return v_at(from + line, e); }, 256ll - from, 64, v_vector, lane);
    }
    ptx_copy_commit();
  };
#pragma unroll
  for (int ahead = 0; ahead < 2; ++ahead) load_keys(own_first + ahead * 4, ahead);
  float a0[2] = {(-INFINITY_F), (-INFINITY_F)};
  float a1[2] = {float(0), float(0)};
  float o[8][4] = {};
  float r0[2];
  {
    r0[0] = r0[1] = (-INFINITY_F);

  }
  long long folded = 0;
  int stage = 0;
  ptx_copy_wait<2>();
  __syncthreads();
  for (int tile = own_first; tile < stop; tile += 4) {
    ptx_copy_wait<1>();
    __syncwarp();
    load_keys(tile + 8, stage == 0 ? 2 : stage - 1);
    const long long first = (tile) * 16ll;
    const int valid = static_cast<int>(min_of(256ll - first, 16ll));
    float s[2][4], p[2][4];
    float kept0[2][4];
    score_product_parts<64, 16>(s, q_tile, k_tiles + stage * 1152);
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
      const bool t8 = (w0[h] == -INFINITY_F);
      const float t9 = t8 ? (0x0p+0f) : w0[h];
#pragma unroll
      for (int n = 0; n < 2; ++n) {
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
    value_product_parts<64, 16>(o, p, v_tiles + stage * 1088);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      a0[h] = b0[h];
      a1[h] = b1[h];
      r0[h] = w0[h];
    }
    folded += valid;
    if (++stage == 3) {
      stage = 0;
    }
  }
  ptx_copy_wait<0>();
  __syncthreads();
  float* const own_states = block_states + warp * 1152;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    if (quad >= 8) continue;
    if (pair == 0) {
      float state[8] = {};
      state[0] = a0[h];
      state[1] = a1[h];
      state[3] = r0[h];
      state[4] = __int_as_float(static_cast<int>(folded));
      store_floats(own_states + (quad + h * 8) * 8, state);
    }
    float* const values = own_states + 128 + (quad + h * 8) * 64 + pair;
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      *reinterpret_cast<float2*>(values + n * 8) = make_float2(o[n][h * 2], o[n][h * 2 + 1]);
    }
  }
  __syncthreads();
  const int line = threadIdx.x / 8, slot = threadIdx.x % 8;
  float merged_o[2][4];
  int merged_count;
  float merged_a0;
  float merged_a1;
  float merged_r0;
  {
    float parts[4][8];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      load_floats(parts[i], block_states + i * 1152 + line * 8);
    }
    merged_count = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float (&part)[8] = parts[i];
      merged_count += __float_as_int(part[4]);
    }
    merged_a0 = (-INFINITY_F);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float (&part)[8] = parts[i];
      merged_a0 = MaxOp::apply(merged_a0, part[0]);
    }
    {
      merged_r0 = merged_a0;
    }
    merged_a1 = float(0);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float (&part)[8] = parts[i];
      const bool t22 = (part[3] == -INFINITY_F);
      const float t23 = part[3] - merged_r0;
      const float t24 = expf(t23);
      const float t25 = t22 ? (0x1p+0f) : t24;
      const float t26 = part[1] * t25;
      merged_a1 = SumOp::apply(merged_a1, t26);
    }
#pragma unroll
    for (int g = 0; g < 2; ++g) {
      const int from = (g * 8 + slot) * 4;
      if (from >= 64) break;
      merged_o[g][0] = merged_o[g][1] = merged_o[g][2] = merged_o[g][3] = 0;
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float (&part)[8] = parts[i];
      const bool t27 = (part[3] == -INFINITY_F);
      const float t28 = part[3] - merged_r0;
      const float t29 = expf(t28);
      const float t30 = t27 ? (0x1p+0f) : t29;
#pragma unroll
      for (int g = 0; g < 2; ++g) {
        const int from = (g * 8 + slot) * 4;
        if (from >= 64) break;
        float values[4];
        load_floats(values, block_states + 128 + line * 64 + from + i * 1152);

#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const float t31 = values[e] * t30;
          merged_o[g][e] += t31;
        }
      }
    }
  }
  if (segments > 1) {
    float* const states = reinterpret_cast<float*>(p3);
    float* const group_states = states + static_cast<long long>(group) * segments * 1152;
    if (slot == 0) {
      float state[8] = {};
      state[0] = merged_a0;
      state[1] = merged_a1;
      state[3] = merged_r0;
      state[4] = __int_as_float(merged_count);
      store_floats(states + static_cast<long long>(blockIdx.x) * 1152 + line * 8, state);
    }
#pragma unroll
    for (int g = 0; g < 2; ++g) {
      const int from = (g * 8 + slot) * 4;
      if (from >= 64) break;
      store_floats(states + static_cast<long long>(blockIdx.x) * 1152 + 128 + line * 64 + from, merged_o[g]);
    }
    __shared__ unsigned before;
    __syncthreads();
    if (threadIdx.x == 0) before = ptx_count(counter + group, segments - 1);
    __syncthreads();
    if (before != segments - 1) return;
    {
      constexpr int done = 0;
      const float* const own = group_states + static_cast<long long>(done) * 1152;
      float parts[2][8];
      float ahead[2][2][4];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float (&part)[8] = parts[i];
        load_floats(part, own + i * 1152 + line * 8);
#pragma unroll
        for (int g = 0; g < 2; ++g) {
          const int from = (g * 8 + slot) * 4;
          if (from >= 64) break;
          float (&values)[4] = ahead[i][g];
          load_floats(values, own + 128 + line * 64 + from + i * 1152);
      }}
      merged_count = 0;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float (&part)[8] = parts[i];
        merged_count += __float_as_int(part[4]);
      }
      merged_a0 = (-INFINITY_F);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float (&part)[8] = parts[i];
        merged_a0 = MaxOp::apply(merged_a0, part[0]);
      }
      {
        merged_r0 = merged_a0;
      }
      merged_a1 = float(0);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float (&part)[8] = parts[i];
        const bool t32 = (part[3] == -INFINITY_F);
        const float t33 = part[3] - merged_r0;
        const float t34 = expf(t33);
        const float t35 = t32 ? (0x1p+0f) : t34;
        const float t36 = part[1] * t35;
        merged_a1 = SumOp::apply(merged_a1, t36);
      }
#pragma unroll
      for (int g = 0; g < 2; ++g) {
        const int from = (g * 8 + slot) * 4;
        if (from >= 64) break;
        merged_o[g][0] = merged_o[g][1] = merged_o[g][2] = merged_o[g][3] = 0;
      }
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float (&part)[8] = parts[i];
        const bool t37 = (part[3] == -INFINITY_F);
        const float t38 = part[3] - merged_r0;
        const float t39 = expf(t38);
        const float t40 = t37 ? (0x1p+0f) : t39;
#pragma unroll
        for (int g = 0; g < 2; ++g) {
          const int from = (g * 8 + slot) * 4;
          if (from >= 64) break;
          float values[4];
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            values[e] = ahead[i][g][e];
          }

#pragma unroll
          for (int e = 0; e < 4; ++e) {
            const float t41 = values[e] * t40;
            merged_o[g][e] += t41;
          }
        }
      }
    }
  }
  {
    const long long row = min_of(first_row + line, 256ll - 1);
    const bool exists = first_row + line < 256ll;
    const bool t42 = (merged_a0 == -INFINITY_F);
    const float t43 = t42 ? INFINITY_F : (0x1p+0f);
    const float t44 = merged_a1 * t43;
    const long long t47 = 64ll * row;
#pragma unroll
    for (int g = 0; g < 2; ++g) {
      const int from = (g * 8 + slot) * 4;
      if (from >= 64) break;
      float four[4];
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const long long column = from + e;
        const float value = merged_o[g][e];
        const float t45 = value * t43;
        const float t46 = t45 / t44;
        four[e] = t46;
      }
      const long long t48 = t0 + t1 + t47 + from;
      store_group<4>(p4, t48, four, exists ? 64 - from : 0, aligned(p4));
    }
  }
}
