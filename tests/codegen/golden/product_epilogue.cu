// product
// %0 = (0.5*(product0 + %1[i1]))*(1 + erf((product0 + %1[i1])/1.41421356))
// product0 = sum_r1 %2[i0,r1] * %3[r1,i1]
#include "device/types.cuh"
#include "device/reduce.cuh"
#include "device/product/product.cuh"
extern "C" __global__ void __launch_bounds__(384, 1) product_tile_dot_f16_dd9a5969(const __grid_constant__ TensorMap m0, const __grid_constant__ TensorMap m1, const half_t* __restrict__ p0, half_t* __restrict__ p1) {
  ptx_launch_dependents();
  extern __shared__ char memory[];
  const unsigned start = ptx_shared_address(memory), ring_at = (start + 1023) & ~1023u;
  const Ring<kTileStages> ring{ring_at + kTileStages * kTileBytes + 67584};
  if (threadIdx.x == 0) {
    ring.init(8);
    ptx_barrier_init_fence();
  }
  __syncthreads();
  const unsigned rows = 16ll, columns = 16ll, tiles = 256ll;
  const int steps = (1024ll + kTileDepth - 1) / kTileDepth;
  const int warp = __shfl_sync(0xffffffffu, threadIdx.x >> 5, 0);
  if (warp >= 8) {
    ptx_give_registers<24>();
    if (threadIdx.x > 8 * 32) return;
    unsigned use = 0;
    for (unsigned tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
      const TilePlace place = place_tile<256>(tile, rows, columns);
      use = load_tile<false>(ring_at, ring, use, steps, place, 0, 0, m0, m1);
    }
    return;
  }
  ptx_take_registers<240>();
  const Divisor by0 = divisor_of((0x1.6a09e6p+0f));
  const bool all_aligned = aligned(p0) && aligned(p1);
  float g0[8];
  auto read_columns = [&](const TilePlace& place) {
    const int part = (threadIdx.x & 31) * 8;
    const bool vector = all_aligned;
    const long long first = place.column + part, valid = 8;

    load_group<8>(g0, p0, 0ll + first, valid, vector);
  };
  half_t* staged = reinterpret_cast<half_t*>(memory + (ring_at - start) + kTileStages * kTileBytes + warp * 8448);
  auto finish = [&](const TilePlace& place, int from, int to) {
    const int top = place.row + warp * kWarpLines, end = to;
    if (from >= end) return;
    if (all_aligned) {
      constexpr bool vector = true;
      const int part = (threadIdx.x & 31) * 8;
      const long long first = place.column + part, valid = 8;

#pragma unroll 2
      for (int line = from; line < end; ++line) {
        const long long row = top + line;
        float sums0[8];
        staged_group(sums0, staged + line % kStagedLines<half_t> * kStagedPitch<half_t> + 0 + part);
        const long long t0 = 4096ll * row;
        float y[8];
#pragma unroll
        for (int v = 0; v < 8; ++v) {
          const long long at = min_of(first + v, 4096ll - 1);
          const float t1 = sums0[v] + g0[v];
          const float t2 = (0x1p-1f) * t1;
          const float t3 = divide(t1, by0);
          const float t4 = erf_fast(t3);
          const float t5 = (0x1p+0f) + t4;
          const float t6 = t2 * t5;
          y[v] = t6;
        }
        store_group<8>(p1, t0 + first, y, valid, vector);
      }
    } else {
      constexpr bool vector = false;
      const int part = (threadIdx.x & 31) * 8;
      const long long first = place.column + part, valid = 8;

#pragma unroll 2
      for (int line = from; line < end; ++line) {
        const long long row = top + line;
        float sums0[8];
        staged_group(sums0, staged + line % kStagedLines<half_t> * kStagedPitch<half_t> + 0 + part);
        const long long t0 = 4096ll * row;
        float y[8];
#pragma unroll
        for (int v = 0; v < 8; ++v) {
          const long long at = min_of(first + v, 4096ll - 1);
          const float t1 = sums0[v] + g0[v];
          const float t2 = (0x1p-1f) * t1;
          const float t3 = divide(t1, by0);
          const float t4 = erf_fast(t3);
          const float t5 = (0x1p+0f) + t4;
          const float t6 = t2 * t5;
          y[v] = t6;
        }
        store_group<8>(p1, t0 + first, y, valid, vector);
      }
    }
  };
  TilePlace last = {};
  bool waits = false;
  unsigned use = 0;
  for (unsigned tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const TilePlace place = place_tile<256>(tile, rows, columns);
    float d[kTileColumns / 8][4];
    use = multiply_tile<half_t, false>(d, ring_at, ring, use, steps, warp / 4, [&](int step) {
      if (waits) finish(last, finish_from(step, steps), finish_from(step + 1, steps));
    });
    read_columns(place);
    __syncwarp();
    stage_lines(d, staged, 0);
    stage_lines(d, staged, 1);
    __syncwarp();
    last = place;
    waits = true;
  }
  if (waits) finish(last, 0, kWarpLines);
}
