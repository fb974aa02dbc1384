// Tiles of a matrix product on sm_90a, 128 rows by 128 columns. One warp brings operands through a
// ring of bulk copies; two warpgroups take tiles in turn, so that the epilogue of one runs while
// the other multiplies.
#pragma once

constexpr int kTileEdge = 128, kTileDepth = 64, kTileStages = 4;
constexpr int kOperandBytes = kTileEdge * kTileDepth * 2, kTileBytes = 2 * kOperandBytes;
// Of a staged row, in floats: rows that are written together start in different banks.
constexpr int kStagedRows = 64, kStagedPitch = kTileEdge + 8;
constexpr int kStagedBytes = kStagedRows * kStagedPitch * 4;

struct TilePlace {
  int row, column, batch;  // of the tile's first element
};

// Consecutive tiles go down a few rows of tiles, then on to the next columns, so that those that
// run together read the same operands.
__device__ __forceinline__ TilePlace place_tile(unsigned tile, unsigned rows, unsigned columns) {
  constexpr unsigned kTogether = 16;
  const unsigned batch = tile / (rows * columns), inside = tile % (rows * columns);
  const unsigned band = kTogether * columns, top = inside / band * kTogether;
  const unsigned height = min(rows - top, kTogether), at = inside % band;
  return {static_cast<int>((top + at % height) * kTileEdge),
          static_cast<int>(at / height * kTileEdge), static_cast<int>(batch)};
}

// A use of the ring holds a's rows over 64 of the contracted axis, then b's columns: rows of 64 of
// the contracted axis (ByRows) or two slabs of 64 columns. Returns the next use.
template <bool ByRows>
__device__ __forceinline__ unsigned load_tile(const TensorMap& a, const TensorMap& b,
                                              unsigned ring_at, const Ring<kTileStages>& ring,
                                              unsigned use, int steps, TilePlace place, int a_batch,
                                              int b_batch) {
  for (int i = 0; i < steps; ++i, ++use) {
    const unsigned full = ring.acquire(use, kTileBytes);
    const unsigned to = ring_at + use % kTileStages * kTileBytes;
    const int depth = i * kTileDepth;
    ptx_copy_box(to, a, full, depth, place.row, a_batch);
    if constexpr (ByRows) {
      ptx_copy_box(to + kOperandBytes, b, full, depth, place.column, b_batch);
    } else {
      ptx_copy_box(to + kOperandBytes, b, full, place.column, depth, b_batch);
      ptx_copy_box(to + kOperandBytes + kOperandBytes / 2, b, full, place.column + kSlabColumns,
                   depth, b_batch);
    }
  }
  return use;
}

// d = Σ over `steps` uses of the ring, in the warpgroup's turn: a wait for a use is only right once
// all but the ring's last uses before it have been seen. d[h] are rows 64 h to 64 h + 63 in the
// fragments of attention.cuh.
template <typename T, bool ByRows>
__device__ __forceinline__ void multiply_tile(float (&d)[2][kTileEdge / 8][4], unsigned ring_at,
                                              const Ring<kTileStages>& ring, unsigned use,
                                              int steps, int group) {
  constexpr int kStep = 16;
  constexpr int kAdvance = ByRows ? kStep * 2 : kStep * kSlabRowBytes;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
#pragma unroll
    for (int n = 0; n < kTileEdge / 8; ++n) {
#pragma unroll
      for (int x = 0; x < 4; ++x) d[h][n][x] = 0;
    }
  }
  await_turn<2>(group);
  for (int i = 0; i < steps; ++i, ++use) {
    ring.wait_full(use);
    const unsigned at = ring_at + use % kTileStages * kTileBytes;
    const unsigned long long a = matrix_descriptor(at, kOperandBytes);
    const unsigned long long b = matrix_descriptor(at + kOperandBytes, kOperandBytes / 2);
    pin_registers(d[0]);
    pin_registers(d[1]);
    ptx_product_fence();
#pragma unroll
    for (int k = 0; k < kTileDepth / kStep; ++k) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        TileProduct<T, ByRows>::add(d[h], a + ((h * 64 * kSlabRowBytes + k * kStep * 2) >> 4),
                                    b + (k * kAdvance >> 4));
      }
    }
    ptx_product_commit();
    pin_registers(d[0]);
    pin_registers(d[1]);
    if (i > 0) {
      ptx_product_wait<1>();
      ring.release(use - 1);
    }
  }
  pass_turn<2>(group);
  wait_products<0>(d[0]);
  pin_registers(d[1]);
  if (steps > 0) ring.release(use - 1);
}

// Half a tile's fragments as rows of floats, for the warpgroup, whose barrier is 3 + group.
__device__ __forceinline__ void stage_rows(const float (&d)[kTileEdge / 8][4], float* staged,
                                           int group) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5 & 3;
  ptx_named_sync(3 + group, 128);  // what was staged before has been read
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float* row = staged + (warp * 16 + r * 8 + (lane >> 2)) * kStagedPitch + (lane & 3) * 2;
#pragma unroll
    for (int n = 0; n < kTileEdge / 8; ++n) {
      *reinterpret_cast<float2*>(row + n * 8) = make_float2(d[n][2 * r], d[n][2 * r + 1]);
    }
  }
  ptx_named_sync(3 + group, 128);
}

template <int V>
__device__ __forceinline__ void staged_group(float (&p)[V], const float* from) {
  if constexpr (V % 4 == 0) {
#pragma unroll
    for (int w = 0; w < V / 4; ++w) {
      const float4 x = reinterpret_cast<const float4*>(from)[w];
      p[4 * w] = x.x;
      p[4 * w + 1] = x.y;
      p[4 * w + 2] = x.z;
      p[4 * w + 3] = x.w;
    }
  } else {
#pragma unroll
    for (int v = 0; v < V; ++v) p[v] = from[v];
  }
}
