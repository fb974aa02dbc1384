// streaming over j<256 for [i0<2, i1<4, i2<256]
//   reference 0 = A0  (after 1)
//   A0[] (plain) <- max float32(sum_r1<64(%0[i0,i1,i2,r1]*%1[i0,i1,j,r1]))
//   A1[] (rescaled) <- sum exp(float32(sum_r1<64(%0[i0,i1,i2,r1]*%1[i0,i1,j,r1])) - select(isneginf(new0),0,new0)), moved by A1*select(isneginf(old0),1,exp(old0 - new0))
//   A2[i3<64] (rescaled) <- sum exp(float32(sum_r1<64(%0[i0,i1,i2,r1]*%1[i0,i1,j,r1])) - select(isneginf(new0),0,new0))*float32(%2[i0,i1,j,i3]), moved by A2*select(isneginf(old0),1,exp(old0 - new0))
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
#include "ptx_barrier.cuh"
#include "ptx_hopper.cuh"
#include "hopper.cuh"
extern "C" __global__ void __launch_bounds__(256, 1) attention_hopper_max_sum_dot_f16_35337986(const __grid_constant__ TensorMap m0, const __grid_constant__ TensorMap m1, const __grid_constant__ TensorMap m2, half_t* __restrict__ p0) {
  extern __shared__ char memory[];
  const unsigned base = (ptx_shared_address(memory) + 1023) & ~1023u;
  const unsigned q_tiles = base, k_tiles = q_tiles + 2 * 8192, v_tiles = k_tiles + 4 * 16384, barriers = v_tiles + 4 * 16384;
  const Ring<2> q_ring{barriers};
  const Ring<4> k_ring{barriers + 32}, v_ring{barriers + 96};
  const Ring<2> work_ring{barriers + 160};
  int* const works = reinterpret_cast<int*>(memory + 512 + (barriers - ptx_shared_address(memory)));
  const int group = __shfl_sync(0xffffffffu, threadIdx.x >> 7, 0);
  if (threadIdx.x == 0) {
    q_ring.init(4);
    k_ring.init(4);
    v_ring.init(4);
    work_ring.init(4);
    ptx_barrier_init_fence();
  }
  __syncthreads();
  const int row_tiles = 4, other_rows = 8, section_rows = 32, all_work = row_tiles * other_rows;
  if (group == 0) {
    ptx_give_registers<40>();
    if (threadIdx.x == 0) {
      ptx_prefetch_map(m0);
      ptx_prefetch_map(m1);
      ptx_prefetch_map(m2);
      unsigned item = 0, use = 0;
      int work = blockIdx.x;
      while (true) {
        work_ring.acquire(item);
        works[item % 2] = work;
        work_ring.fill(item);
        if (work >= all_work) break;
        const int section = work / (section_rows * row_tiles), inside = work - section * section_rows * row_tiles;
        const int here = min(section_rows, other_rows - section * section_rows), from_last = inside / here;
        const long long other = (section * section_rows + inside - from_last * here) & 0x7fffffff;
        const int first_row = (row_tiles - 1 - from_last) * 64;
        const int last_row = static_cast<int>(min_of(first_row + 63ll, 256ll - 1));
        const long long q0 = floor_div(other, 4ll), c0 = other - q0 * 4ll;
        const int tiles = (256 + 127) / 128;
        const int c1 = static_cast<int>(q0);
        const int c2 = static_cast<int>(c0);
        const int c3 = static_cast<int>(q0);
        const int c4 = static_cast<int>(c0);
        const int c5 = static_cast<int>(q0);
        const int c6 = static_cast<int>(c0);
        const unsigned q_full = q_ring.acquire(item, 8192);
        const unsigned q_tile = q_tiles + item++ % 2 * 8192;
        ptx_copy_box(q_tile + 0, m0, q_full, 0, first_row, c1, c2);

        for (int tile = 0; tile < tiles; ++tile, ++use) {
          const int line = (tile) * 128;
          const unsigned k_full = k_ring.acquire(use, 16384);
          ptx_copy_box(k_tiles + use % 4 * 16384 + 0, m1, k_full, 0, line, c3, c4);
          const unsigned v_full = v_ring.acquire(use, 16384);
          ptx_copy_box(v_tiles + use % 4 * 16384 + 0, m2, v_full, 0, line, c5, c6);
        }
        work += gridDim.x;
      }
    }
  } else {
    ptx_take_registers<232>();
    const int warp = threadIdx.x >> 5 & 3, quad = (threadIdx.x & 31) >> 2, pair = (threadIdx.x & 3) * 2;
    if (group == 1) pass_turn<1>(0);
    unsigned item = 0, use = 0;
    while (true) {
      work_ring.wait_full(item);
      const int work = works[item % 2];
      __syncwarp();
      work_ring.release(item);
      if (work >= all_work) break;
      const int section = work / (section_rows * row_tiles), inside = work - section * section_rows * row_tiles;
      const int here = min(section_rows, other_rows - section * section_rows), from_last = inside / here;
      const long long other = (section * section_rows + inside - from_last * here) & 0x7fffffff;
      const int first_row = (row_tiles - 1 - from_last) * 64;
      const int last_row = static_cast<int>(min_of(first_row + 63ll, 256ll - 1));
      const long long q1 = floor_div(other, 4ll), c7 = other - q1 * 4ll;
      const int tiles = (256 + 127) / 128;
      const int group_row = first_row + (group - 1) * 64, last_group_row = static_cast<int>(min_of(group_row + 63ll, 256ll - 1)), own_row = group_row + warp * 16 + quad;
      float a0[2] = {(-INFINITY_F), (-INFINITY_F)}, b0[2];
      float a1[2] = {float(0), float(0)}, b1[2];
      float r0[2], w0[2];
      {
        r0[0] = r0[1] = (-INFINITY_F);

      }
      float s[16][4], o[8][4] = {};
      unsigned p[8][4];
      const unsigned q_own = q_tiles + item % 2 * 8192 + (group - 1) * 8192;
      q_ring.wait_full_together(item);
      if (tiles > 0 && group_row < 256ll) {
        {
          const int first = (0) * 128;
          k_ring.wait_full(use);
          start_scores<half_t, 64, 128>(s, q_own, 8192, k_tiles + use % 4 * 16384);
          wait_products<0>(s);
          k_ring.release(use);
          {
            const int valid = 128;
#pragma unroll
            for (int h = 0; h < 2; ++h) {
              const int row = static_cast<int>(min_of(static_cast<long long>(own_row + h * 8), 256ll - 1));
              float tile0[2] = {(-INFINITY_F), (-INFINITY_F)};
#pragma unroll
              for (int n = 0; n < 16; ++n) {
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                  const int x = h * 2 + e;
                  const int at = first + n * 8 + pair + e;
                  const float raw = s[n][x];
                  tile0[e] = MaxOp::apply(tile0[e], raw);
                }
              }
              {
                b0[h] = MaxOp::apply(a0[h], quad_reduce<MaxOp>(MaxOp::apply(tile0[0], tile0[1])));
              }
            }
#pragma unroll
            for (int h = 0; h < 2; ++h) {
              w0[h] = b0[h];
            }
#pragma unroll
            for (int h = 0; h < 2; ++h) {
              const int row = static_cast<int>(min_of(static_cast<long long>(own_row + h * 8), 256ll - 1));
              float tile1[2] = {float(0), float(0)};
              const bool t0 = (w0[h] == -INFINITY_F);
              const float t1 = t0 ? (0x0p+0f) : w0[h];
              const float shift0 = t1 * (-0x1.715476p+0f);
#pragma unroll
              for (int n = 0; n < 16; ++n) {
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                  const int x = h * 2 + e;
                  const int at = first + n * 8 + pair + e;
                  const float raw = s[n][x];
                  const float power0 = ptx_exp2(fmaf(raw, (0x1.715476p+0f), shift0));
                  tile1[e] = SumOp::apply(tile1[e], power0);
                  s[n][x] = power0;
                }
              }
              {
                const bool t2 = (r0[h] == -INFINITY_F);
                const float t3 = r0[h] - w0[h];
                const float t4 = __expf(t3);
                const float t5 = t2 ? (0x1p+0f) : t4;
                const float t6 = a1[h] * t5;
                b1[h] = SumOp::apply(t6, SumOp::apply(tile1[0], tile1[1]));
              }
            }
          }
#pragma unroll
          for (int h = 0; h < 2; ++h) {
            a0[h] = b0[h];
            a1[h] = b1[h];
            r0[h] = w0[h];
          }
          pack_weights<half_t, 128>(p, s);
        }
        for (int tile = 1; tile < tiles; ++tile, ++use) {
          const int first = (tile) * 128;
          k_ring.wait_full(use + 1);
          await_turn<1>(group - 1);
          start_scores<half_t, 64, 128>(s, q_own, 8192, k_tiles + (use + 1) % 4 * 16384);
          v_ring.wait_full(use);
          start_values<half_t, 64, 128>(o, p, v_tiles + use % 4 * 16384);
          pass_turn<1>(group - 1);
          wait_products<1>(s);
          k_ring.release(use + 1);
          {
            const int valid = 128;
#pragma unroll
            for (int h = 0; h < 2; ++h) {
              const int row = static_cast<int>(min_of(static_cast<long long>(own_row + h * 8), 256ll - 1));
              float tile0[2] = {(-INFINITY_F), (-INFINITY_F)};
#pragma unroll
              for (int n = 0; n < 16; ++n) {
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                  const int x = h * 2 + e;
                  const int at = first + n * 8 + pair + e;
                  const float raw = s[n][x];
                  tile0[e] = MaxOp::apply(tile0[e], raw);
                }
              }
              {
                b0[h] = MaxOp::apply(a0[h], quad_reduce<MaxOp>(MaxOp::apply(tile0[0], tile0[1])));
              }
            }
#pragma unroll
            for (int h = 0; h < 2; ++h) {
              w0[h] = b0[h];
            }
#pragma unroll
            for (int h = 0; h < 2; ++h) {
              const int row = static_cast<int>(min_of(static_cast<long long>(own_row + h * 8), 256ll - 1));
              float tile1[2] = {float(0), float(0)};
              const bool t7 = (w0[h] == -INFINITY_F);
              const float t8 = t7 ? (0x0p+0f) : w0[h];
              const float shift1 = t8 * (-0x1.715476p+0f);
#pragma unroll
              for (int n = 0; n < 16; ++n) {
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                  const int x = h * 2 + e;
                  const int at = first + n * 8 + pair + e;
                  const float raw = s[n][x];
                  const float power1 = ptx_exp2(fmaf(raw, (0x1.715476p+0f), shift1));
                  tile1[e] = SumOp::apply(tile1[e], power1);
                  s[n][x] = power1;
                }
              }
              {
                const bool t9 = (r0[h] == -INFINITY_F);
                const float t10 = r0[h] - w0[h];
                const float t11 = __expf(t10);
                const float t12 = t9 ? (0x1p+0f) : t11;
                const float t13 = a1[h] * t12;
                b1[h] = SumOp::apply(t13, SumOp::apply(tile1[0], tile1[1]));
              }
            }
          }
          wait_products<0>(o);
          v_ring.release(use);
          if (!__all_sync(0xffffffffu, r0[0] == w0[0] && r0[1] == w0[1])) {
#pragma unroll
            for (int h = 0; h < 2; ++h) {
              const int row = static_cast<int>(min_of(static_cast<long long>(own_row + h * 8), 256ll - 1));
              const bool t14 = (r0[h] == -INFINITY_F);
              const float t15 = r0[h] - w0[h];
              const float t16 = __expf(t15);
              const float t17 = t14 ? (0x1p+0f) : t16;
#pragma unroll
              for (int n = 0; n < 8; ++n) {
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                  const int x = h * 2 + e;
                  const float t18 = o[n][x] * t17;
                  o[n][x] = t18;
                }
              }
            }
          }
#pragma unroll
          for (int h = 0; h < 2; ++h) {
            a0[h] = b0[h];
            a1[h] = b1[h];
            r0[h] = w0[h];
          }
          pack_weights<half_t, 128>(p, s);
        }
        q_ring.release(item);
        v_ring.wait_full(use);
        start_values<half_t, 64, 128>(o, p, v_tiles + use % 4 * 16384);
        wait_products<0>(o);
        v_ring.release(use++);
      } else {
        q_ring.release(item);
        for (int tile = 0; tile < tiles; ++tile, ++use) {
          k_ring.wait_full_together(use);
          k_ring.release(use);
          if (tile > 0) {
            await_turn<1>(group - 1);
            pass_turn<1>(group - 1);
          }
          v_ring.wait_full_together(use);
          v_ring.release(use);
        }
      }
      ++item;
      const long long t25 = 65536ll * q1;
      const long long t26 = 16384ll * c7;
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        a1[h] = quad_reduce<SumOp>(a1[h]);
      }
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int row = static_cast<int>(min_of(static_cast<long long>(own_row + h * 8), 256ll - 1));
        const bool exists = own_row + h * 8 < 256ll;
        const bool t19 = (a0[h] == -INFINITY_F);
        const float t20 = t19 ? INFINITY_F : (0x1p+0f);
        const float t21 = a1[h] * t20;
        const long long t27 = 64ll * row;
#pragma unroll
        for (int n = 0; n < 8; ++n) {
          float out[2];
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            const int x = h * 2 + e, column = n * 8 + pair + e;
            const float t22 = o[n][x] * t20;
            const float t23 = 1 / t21;
            const float t24 = t22 * t23;
            out[e] = t24;
          }
          const int column = n * 8 + pair;
          const long long t28 = t25 + t26 + t27 + column;
          if (exists && column < 64) store_pair(p0, t28, out);
        }
      }

    }
  }
}
