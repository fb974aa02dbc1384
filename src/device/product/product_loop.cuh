// Matrix products with an epilogue on sm_90a. Blocks of kProductThreads threads take the tiles of
// product.cuh in turn: two warpgroups multiply, and one thread of a third one loads. Where sums are
// staged in 16 bits, the warps compute the epilogue of a tile while the tensor cores multiply the
// next one; fp32 sums have no room until then, so that their epilogue runs at once, in two halves.
#pragma once

#include "device/product/product.cuh"
#include "device/product/product_lines.cuh"
#include "device/ptx.cuh"
#include "device/ptx_barrier.cuh"

constexpr int kProductThreads = 384, kMultiplyingWarps = 8;
constexpr int kStagedBytes = kTileRows * (kTileColumns + 8) * 2;  // of all warps

// Of a product, and its tiles: those of a batch down and across, and those of all batches.
struct ProductSizes {
  long long rows, columns, depth;
  long long tiles_down, tiles_across, tiles;
};

// `memory`: of the block, 1024 bytes for alignment, kTileStages · kTileBytes, kStagedBytes, and the
// ring's barriers.
template <typename Tile>
class ProductTiles {
 public:
  __device__ __forceinline__ ProductTiles(char* memory, const ProductSizes& sizes)
      : sizes_(sizes),
        tiles_(static_cast<unsigned>(sizes.tiles)),
        steps_(static_cast<int>((sizes.depth + kTileDepth - 1) / kTileDepth)) {
    const unsigned start = ptx_shared_address(memory);
    ring_at_ = (start + 1023) & ~1023u;
    ring_ = {ring_at_ + kTileStages * kTileBytes + kStagedBytes};
    if (threadIdx.x == 0) {
      ring_.init(kMultiplyingWarps);
      ptx_barrier_init_fence();
    }
    __syncthreads();
    warp_ = __shfl_sync(0xffffffffu, threadIdx.x >> 5, 0);
    staged_ = reinterpret_cast<Staged*>(memory + (ring_at_ - start) + kTileStages * kTileBytes +
                                        warp_ * (kStagedBytes / kMultiplyingWarps));
  }

  // Loads the operands of all tiles in the warpgroup for it, whose threads are then done: true. The
  // others call multiply(). Operands: of product_operands.cuh.
  template <typename Operands, typename... Maps>
  __device__ __forceinline__ bool load(const Operands& operands, const TensorMap& a,
                                       const Maps&... b) {
    static_assert(sizeof...(b) == Tile::kProducts);
    constexpr int kLoadRegisters = 24, kMultiplyRegisters = 240;
    if (warp_ < kMultiplyingWarps) {
      ptx_take_registers<kMultiplyRegisters>();
      return false;
    }
    ptx_give_registers<kLoadRegisters>();
    if (threadIdx.x > kMultiplyingWarps * 32) return true;
    unsigned use = 0;
    for (unsigned tile = blockIdx.x; tile < tiles_; tile += gridDim.x) {
      const TilePlace place = this->place(tile);
      use = load_tile<Tile::kByRows>(ring_at_, ring_, use, steps_, place, operands, a, b...);
    }
    return true;
  }

  // `aligned`: groups of Width columns are aligned wherever the epilogue accesses memory.
  //   read(batch, group)    where a lane has one group of a line: reads what depends on its columns
  //                         alone, before the lines of a tile
  //   finish(batch, lines)  calls lines.each_group(compute) once
  template <typename Read, typename Finish>
  __device__ __forceinline__ void multiply(bool aligned, const Read& read, const Finish& finish) {
    TilePlace last = {};
    bool waits = false;
    unsigned use = 0;
    const auto finish_lines = [&](const TilePlace& place, int from, int to) {
      ProductLines<Tile> lines = this->lines(place, from, to, true);
      if (lines.from >= lines.end) return;
      // Two loops, so neither has a branch on alignment inside.
      if (aligned) {
        finish(place.batch, lines);
      } else {
        lines.vector = false;
        finish(place.batch, lines);
      }
    };
    for (unsigned tile = blockIdx.x; tile < tiles_; tile += gridDim.x) {
      const TilePlace place = this->place(tile);
      float d[kTileColumns / 8][4];
      use = multiply_tile<T, Tile::kByRows>(
          d, ring_at_, ring_, use, steps_, warp_ / 4, [&](int step) {
            if (!waits) return;
            finish_lines(last, finish_from(step, steps_), finish_from(step + 1, steps_));
          });
      if constexpr (Tile::kOneGroup) lines(place, 0, kWarpLines, aligned).read_group(read);
      if constexpr (Tile::kFinishesLater) {
        __syncwarp();
        stage_lines(d, staged_, 0);
        stage_lines(d, staged_, 1);
        __syncwarp();
        last = place;
        waits = true;
      } else {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          __syncwarp();
          stage_lines(d, staged_, r);
          __syncwarp();
          finish_lines(place, r * kStagedLines<Staged>, (r + 1) * kStagedLines<Staged>);
        }
      }
    }
    if (waits) finish_lines(last, 0, kWarpLines);
  }

 private:
  using T = typename Tile::T;
  using Staged = typename Tile::Staged;

  __device__ __forceinline__ TilePlace place(unsigned tile) const {
    return place_tile<Tile::kColumns>(tile, static_cast<unsigned>(sizes_.tiles_down),
                                      static_cast<unsigned>(sizes_.tiles_across));
  }

  __device__ __forceinline__ ProductLines<Tile> lines(const TilePlace& place, int from, int to,
                                                      bool vector) const {
    const int top = place.row + warp_ * kWarpLines;
    const int end = Tile::kWholeRows ? to : min(to, static_cast<int>(sizes_.rows) - top);
    return {staged_, place, top, from, end, sizes_.columns, vector};
  }

  const ProductSizes sizes_;
  const unsigned tiles_;
  const int steps_;
  unsigned ring_at_;
  Ring<kTileStages> ring_;
  int warp_;
  Staged* staged_;
};
