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
#include "device/ptx_split.cuh"
#include "device/key_tiles.cuh"
#include "device/states.cuh"
#include "device/attention.cuh"
#include "device/split.cuh"
extern "C" __global__ void __launch_bounds__(128, 1) attention_split_max_sum_dot_f16_d3f961a8(const __grid_constant__ TensorMap m0, const __grid_constant__ TensorMap m1, const half_t* __restrict__ p0, float* __restrict__ p1, half_t* __restrict__ p2, unsigned* counter) {
  ptx_launch_dependents();
  const unsigned segments = static_cast<unsigned>(1ll), row_tiles = static_cast<unsigned>(16ll);
  const unsigned group = blockIdx.x / segments, segment = blockIdx.x - group * segments;
  const long long other = group / row_tiles, first_row = (group % row_tiles) * 16ll;
  const int warp = __shfl_sync(0xffffffffu, threadIdx.x >> 5, 0), lane = threadIdx.x & 31, quad = lane >> 2, pair = (lane & 3) * 2;
  const long long own_row = first_row + quad;
  const long long q0 = floor_div(other, 4ll), c0 = other - q0 * 4ll;
  const int tiles = (256 + 31) / 32;
  const int own_tiles = (tiles + static_cast<int>(segments) - 1) / static_cast<int>(segments), start = static_cast<int>(segment) * own_tiles, stop = min(tiles, start + own_tiles), own_first = start + warp;
  extern __shared__ __align__(16) char memory[];
  const unsigned base = (ptx_shared_address(memory) + 1023) / 1024 * 1024;
  float* const block_states = reinterpret_cast<float*>(memory + (base - ptx_shared_address(memory)));
  const unsigned k_tiles = base + warp * 24576, v_tiles = k_tiles + 12288, barriers = base + 98304 + warp * 24;
  const int c1 = static_cast<int>(q0);
  const int c2 = static_cast<int>(c0);
  const int c3 = static_cast<int>(q0);
  const int c4 = static_cast<int>(c0);
  const auto load_keys = [&](int tile, int stage) {
    const int from = static_cast<int>((tile) * 32ll);
    const unsigned full = barriers + stage * 8;
    ptx_barrier_expect(full, 8192);
    ptx_copy_box(k_tiles + stage * 4096 + 0, m0, full, 0, from, c1, c2);
    ptx_copy_box(v_tiles + stage * 4096 + 0, m1, full, 0, from, c3, c4);
  };
  if (ptx_elect()) {
    ptx_prefetch_map(m0);
    ptx_prefetch_map(m1);
#pragma unroll
    for (int i = 0; i < 3; ++i) ptx_barrier_init(barriers + i * 8, 1);
    ptx_barrier_init_fence();
#pragma unroll 1
    for (int i = 0; i < 3; ++i) {
      const int tile = own_first + i * 4;
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
  for (int tile = own_first; tile < stop; tile += 4) {
    await_copies(barriers + stage * 8, parity);
    __syncwarp();
    const long long first = (tile) * 32ll;
    const int valid = static_cast<int>(min_of(256ll - first, 32ll));
    float s[4][4], p[4][4];
    float kept0[4][4];
    score_product<64, 32>(s, q, k_tiles + stage * 4096, half_t{});
    float b0[2];
    float b1[2];
    float w0[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const long long row = min_of(own_row + h * 8, 256ll - 1);
      float t0_tile = (-INFINITY_F);
#pragma unroll
      for (int n = 0; n < 4; ++n) {
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
      for (int n = 0; n < 4; ++n) {
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
    value_product<64, 32>(o, p, v_tiles + stage * 4096, half_t{});
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      a0[h] = b0[h];
      a1[h] = b1[h];
      r0[h] = w0[h];
    }
    folded += valid;
    __syncwarp();
    const int next = tile + 12;
    if (next < stop && ptx_elect()) load_keys(next, stage);
    if (++stage == 3) {
      stage = 0;
      parity ^= 1;
    }
  }
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
      const bool t18 = (part[3] == -INFINITY_F);
      const float t19 = part[3] - merged_r0;
      const float t20 = exp_fast(t19);
      const float t21 = t18 ? (0x1p+0f) : t20;
      const float t22 = part[1] * t21;
      merged_a1 = SumOp::apply(merged_a1, t22);
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
      const bool t23 = (part[3] == -INFINITY_F);
      const float t24 = part[3] - merged_r0;
      const float t25 = exp_fast(t24);
      const float t26 = t23 ? (0x1p+0f) : t25;
#pragma unroll
      for (int g = 0; g < 2; ++g) {
        const int from = (g * 8 + slot) * 4;
        if (from >= 64) break;
        float values[4];
        load_floats(values, block_states + 128 + line * 64 + from + i * 1152);

#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const float t27 = values[e] * t26;
          merged_o[g][e] += t27;
        }
      }
    }
  }
  if (segments > 1) {
    float* const states = reinterpret_cast<float*>(p1);
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
      float parts[1][8];
      float ahead[1][2][4];
#pragma unroll
      for (int i = 0; i < 1; ++i) {
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
      for (int i = 0; i < 1; ++i) {
        const float (&part)[8] = parts[i];
        merged_count += __float_as_int(part[4]);
      }
      merged_a0 = (-INFINITY_F);
#pragma unroll
      for (int i = 0; i < 1; ++i) {
        const float (&part)[8] = parts[i];
        merged_a0 = MaxOp::apply(merged_a0, part[0]);
      }
      {
        merged_r0 = merged_a0;
      }
      merged_a1 = float(0);
#pragma unroll
      for (int i = 0; i < 1; ++i) {
        const float (&part)[8] = parts[i];
        const bool t28 = (part[3] == -INFINITY_F);
        const float t29 = part[3] - merged_r0;
        const float t30 = exp_fast(t29);
        const float t31 = t28 ? (0x1p+0f) : t30;
        const float t32 = part[1] * t31;
        merged_a1 = SumOp::apply(merged_a1, t32);
      }
#pragma unroll
      for (int g = 0; g < 2; ++g) {
        const int from = (g * 8 + slot) * 4;
        if (from >= 64) break;
        merged_o[g][0] = merged_o[g][1] = merged_o[g][2] = merged_o[g][3] = 0;
      }
#pragma unroll
      for (int i = 0; i < 1; ++i) {
        const float (&part)[8] = parts[i];
        const bool t33 = (part[3] == -INFINITY_F);
        const float t34 = part[3] - merged_r0;
        const float t35 = exp_fast(t34);
        const float t36 = t33 ? (0x1p+0f) : t35;
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
            const float t37 = values[e] * t36;
            merged_o[g][e] += t37;
          }
        }
      }
    }
  }
  {
    const long long row = min_of(first_row + line, 256ll - 1);
    const bool exists = first_row + line < 256ll;
    const bool t38 = (merged_a0 == -INFINITY_F);
    const float t39 = t38 ? INFINITY_F : (0x1p+0f);
    const float t40 = merged_a1 * t39;
    const Divisor by0 = divisor_of(t40);
    const long long t43 = 64ll * row;
#pragma unroll
    for (int g = 0; g < 2; ++g) {
      const int from = (g * 8 + slot) * 4;
      if (from >= 64) break;
      float four[4];
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const long long column = from + e;
        const float value = merged_o[g][e];
        const float t41 = value * t39;
        const float t42 = divide(t41, by0);
        four[e] = t42;
      }
      const long long t44 = t0 + t1 + t43 + from;
      store_group<4>(p2, t44, four, exists ? 64 - from : 0, aligned(p2));
    }
  }
}
