// Boxes that are kept of those that overlap, best scores first (non-maximum suppression): a box is
// kept unless it overlaps a kept one before it.
//
// A segment is a class of a batch; its candidates are sorted. They are taken in chunks:
//
//   suppression_boxes      the corners of all candidates, in order, and how many there are
//   suppression_overlaps   of a chunk: which candidates overlap one that is kept, and which overlap
//                          each other, as bits of words by tiles of 64
//   suppression_keep       a block walks the chunk's tiles: within one, candidates one after the
//                          other; then the rows of those kept strike out later tiles
//   suppression_write      the kept ones of all segments
#pragma once

#include "device/reduce.cuh"

constexpr int kSuppressionThreads = 256;
constexpr int kSuppressionTile = 64;

struct SuppressionState {
  unsigned candidates, next, kept;  // next: the chunk's first candidate
  unsigned padding;
};

// Arithmetic without fused multiply-adds, so that results are those of the CPU.
__device__ __forceinline__ float box_area(const float4& box) {
  return __fmul_rn(__fsub_rn(box.z, box.x), __fsub_rn(box.w, box.y));
}
// Boxes are (y1, x1, y2, x2). Whether the intersection is above `threshold` of the union.
__device__ __forceinline__ bool boxes_overlap(const float4& a, const float4& b, float threshold) {
  const float area = box_area(a), other = box_area(b);
  const float height = __fsub_rn(a.z < b.z ? a.z : b.z, a.x > b.x ? a.x : b.x);
  const float width = __fsub_rn(a.w < b.w ? a.w : b.w, a.y > b.y ? a.y : b.y);
  const float common = __fmul_rn(height, width);
  return height > 0 && width > 0 && area > 0 && other > 0 &&
         __fdiv_rn(common, __fsub_rn(__fadd_rn(area, other), common)) > threshold;
}

// `at`: four coordinates; the box's corners in increasing order.
template <bool Centered>
__device__ __forceinline__ float4 corners_of(const float (&at)[4]) {
  if (Centered) {
    const float width = __fmul_rn(at[2], 0.5f), height = __fmul_rn(at[3], 0.5f);
    return make_float4(__fsub_rn(at[1], height), __fsub_rn(at[0], width), __fadd_rn(at[1], height),
                       __fadd_rn(at[0], width));
  }
  return make_float4(at[2] < at[0] ? at[2] : at[0], at[3] < at[1] ? at[3] : at[1],
                     at[0] < at[2] ? at[2] : at[0], at[1] < at[3] ? at[3] : at[1]);
}

// `positions`: of a segment's boxes, candidates first. is_candidate(segment, box), and
// read(segment, box, coordinates). States are 0 before.
template <bool Centered, typename IsCandidate, typename Read>
__device__ __forceinline__ void suppression_boxes(const unsigned* positions, float4* boxes,
                                                  SuppressionState* states, long long segments,
                                                  long long length, const IsCandidate& is_candidate,
                                                  const Read& read) {
  const long long all = segments * length;
  for (long long i = blockIdx.x * 1ll * kSuppressionThreads + threadIdx.x; i < all;
       i += gridDim.x * 1ll * kSuppressionThreads) {
    const long long segment = i / length, rank = i - segment * length;
    const unsigned box = positions[i];
    if (!is_candidate(segment, box)) continue;
    if (rank + 1 == length || !is_candidate(segment, positions[i + 1])) {
      states[segment].candidates = static_cast<unsigned>(rank + 1);
    }
    float coordinates[4];
    read(segment, box, coordinates);
    boxes[i] = corners_of<Centered>(coordinates);
  }
}

// What the kernels of a chunk read and write, of `chunk` candidates, a multiple of a tile, in
// segments of `length`.
struct Suppression {
  const float4* boxes;
  SuppressionState* states;
  unsigned* kept;              // ranks of the kept candidates, of each segment
  unsigned long long* struck;  // by segment and tile: those that overlap a kept one; 0 before
  unsigned long long* words;   // by segment, candidate and tile: later ones that it overlaps
  long long length, chunk;
  float threshold;

  __device__ __forceinline__ long long tiles() const { return chunk / kSuppressionTile; }
};

// Blocks of kSuppressionTile threads, a candidate each: along x the tiles of the chunks of all
// segments; along y what they are compared with, in equal shares.
__device__ __forceinline__ void suppression_overlaps(const Suppression& s, long long limit) {
  constexpr int kTile = kSuppressionTile;
  __shared__ float4 others[kTile];
  const long long segment = blockIdx.x / s.tiles(), tile = blockIdx.x - segment * s.tiles();
  const SuppressionState state = s.states[segment];
  const long long base = state.next + tile * kTile;
  if (base >= state.candidates || state.kept >= limit) return;
  const float4* const boxes = s.boxes + segment * s.length;
  const unsigned* const kept = s.kept + segment * s.length;
  const int own = static_cast<int>(threadIdx.x);
  const bool there = base + own < state.candidates;
  const float4 box = boxes[there ? base + own : base];
  const long long kept_tiles = (state.kept + kTile - 1) / kTile;
  const long long end = min_of(s.tiles(), (state.candidates - state.next + kTile - 1ll) / kTile);
  unsigned long long struck = 0;
#pragma unroll 1
  for (long long i = blockIdx.y; i < kept_tiles + end - tile; i += gridDim.y) {
    const bool before = i < kept_tiles;
    const long long other = before ? i * kTile : state.next + (tile + i - kept_tiles) * kTile;
    const long long count = min_of(1ll * kTile, (before ? state.kept : state.candidates) - other);
    __syncthreads();
    if (own < count) others[own] = boxes[before ? kept[other + own] : other + own];
    __syncthreads();
    unsigned long long word = 0;
#pragma unroll 4
    for (int j = 0; j < count; ++j) {
      if (boxes_overlap(box, others[j], s.threshold)) word |= 1ull << j;
    }
    if (before) {
      struck |= word;
    } else if (there) {
      if (i == kept_tiles) word &= own == kTile - 1 ? 0 : ~0ull << (own + 1);
      s.words[(segment * s.chunk + tile * kTile + own) * s.tiles() + tile + i - kept_tiles] = word;
    }
  }
  if (there && struck != 0) atomicOr(s.struck + segment * s.tiles() + tile, 1ull << own);
}

// A block for each segment, of kSuppressionThreads.
__device__ __forceinline__ void suppression_keep(const Suppression& s, long long limit) {
  constexpr int kTile = kSuppressionTile, kWarps = kSuppressionThreads / 32;
  constexpr int kRows = kTile / kWarps;  // of a warp
  constexpr int kNear = 512;             // tiles whose struck bits are in shared memory
  __shared__ unsigned long long rows[2][kTile], near[kNear];
  __shared__ unsigned strikes[2][kTile / 32];  // rows that are not 0
  const long long segment = blockIdx.x;
  const SuppressionState state = s.states[segment];
  if (state.next >= state.candidates || state.kept >= limit) return;
  const int lane = static_cast<int>(threadIdx.x) & 31, warp = static_cast<int>(threadIdx.x) >> 5;
  const long long left = state.candidates - state.next;
  const long long end = min_of(s.tiles(), (left + kTile - 1) / kTile);
  const unsigned long long* const words = s.words + segment * s.chunk * s.tiles();
  unsigned long long* const given = s.struck + segment * s.tiles();
  unsigned long long* const struck = end <= kNear ? near : given;
  unsigned* const kept = s.kept + segment * s.length;
  // The words of a tile's candidates for the tile itself.
  const auto load = [&](long long tile) {
    const long long row = tile * kTile + threadIdx.x;
    const bool there = threadIdx.x < kTile && tile < end && row < left;
    return there ? words[row * s.tiles() + tile] : 0ull;
  };
  const auto keep_rows = [&](long long tile, unsigned long long word) {
    if (threadIdx.x >= kTile) return;
    rows[tile & 1][threadIdx.x] = word;
    const unsigned flags = __ballot_sync(0xffffffffu, word != 0);
    if (lane == 0) strikes[tile & 1][warp] = flags;
  };
  for (long long tile = threadIdx.x; struck == near && tile < end; tile += kSuppressionThreads) {
    near[tile] = given[tile];
  }
  long long count = state.kept;
  keep_rows(0, load(0));
  __syncthreads();
#pragma unroll 1
  for (long long tile = 0; tile < end && count < limit; ++tile) {
    const unsigned long long ahead = load(tile + 1);
    const long long there = min_of(1ll * kTile, left - tile * kTile);
    const unsigned long long all = there == kTile ? ~0ull : (1ull << there) - 1;
    unsigned long long chosen = all & ~*static_cast<volatile unsigned long long*>(struck + tile);
    const unsigned* const flags = strikes[tile & 1];
    unsigned long long striking = static_cast<unsigned long long>(flags[1]) << 32 | flags[0];
    while ((striking &= chosen) != 0) {
      const int first = __ffsll(static_cast<long long>(striking)) - 1;
      chosen &= ~rows[tile & 1][first];
      striking &= striking - 1;
    }
    const long long room = limit - count;
    if (__popcll(chosen) > room) {
      unsigned long long last = chosen;
      for (long long i = 0; i < room; ++i) last &= last - 1;
      chosen &= ~last;
    }
    if (threadIdx.x < kTile && (chosen >> threadIdx.x & 1) != 0) {
      const unsigned long long before = chosen & ((1ull << threadIdx.x) - 1);
      kept[count + __popcll(before)] =
          static_cast<unsigned>(state.next + tile * kTile + threadIdx.x);
    }
    count += __popcll(chosen);
    for (long long later = tile + 1 + lane; later < end; later += 32) {
      unsigned long long word = 0;
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        const int row = warp * kRows + i;
        if ((chosen >> row & 1) != 0) word |= words[(tile * kTile + row) * s.tiles() + later];
      }
      if (word != 0) atomicOr(struck + later, word);
    }
    keep_rows(tile + 1, ahead);
    __syncthreads();
  }
  for (long long tile = threadIdx.x; tile < end; tile += kSuppressionThreads) given[tile] = 0;
  if (threadIdx.x == 0) {
    s.states[segment].next = static_cast<unsigned>(min_of(state.next + s.chunk, s.length));
    s.states[segment].kept = static_cast<unsigned>(count);
  }
}

// A block for each segment, and at least one: store(segment, box, number), and how many there are
// of all segments.
template <typename Store>
__device__ __forceinline__ void suppression_write(const unsigned* positions, const unsigned* kept,
                                                  const SuppressionState* states, long long* found,
                                                  long long segments, long long length,
                                                  const Store& store) {
  constexpr int kWarps = kSuppressionThreads / 32;
  __shared__ __align__(16) char slots[kWarps * kSlotBytes];
  const long long segment = blockIdx.x, row = segment * length;
  long long before = 0;
  for (long long other = threadIdx.x; other < segment; other += kSuppressionThreads) {
    before += states[other].kept;
  }
  before = block_reduce<kWarps, SumOp>(before, slots);
  const unsigned count = segment < segments ? states[segment].kept : 0;
  if (segment == gridDim.x - 1 && threadIdx.x == 0) *found = before + count;
  for (unsigned i = threadIdx.x; i < count; i += kSuppressionThreads) {
    store(segment, positions[row + kept[row + i]], before + i);
  }
}
