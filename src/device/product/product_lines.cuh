// The epilogue of a tile of a product (product_loop.cuh), whose sums its warps have staged in
// shared memory: a warp takes its lines one after the other, a lane groups of adjacent columns.
#pragma once

#include "device/maps/group.cuh"
#include "device/product/product.cuh"

// Staged: the type to which the graph rounds the sums. Width: adjacent columns of a group of the
// epilogue; a lane of a warp has one group of each line, or every 32nd one. ByRows: the columns are
// contiguous along the contracted axis. WholeRows, WholeColumns: tiles divide the result.
template <typename T_, typename Staged_, int Products_, int Width_, bool ByRows_, bool WholeRows_,
          bool WholeColumns_>
struct ProductTile {
  using T = T_;
  using Staged = Staged_;
  static constexpr int kProducts = Products_, kWidth = Width_;
  static constexpr int kColumns = kTileColumns / kProducts;  // of each product
  static constexpr bool kByRows = ByRows_, kWholeRows = WholeRows_, kWholeColumns = WholeColumns_;
  static constexpr bool kOneGroup = 32 * kWidth == kColumns;
  static constexpr bool kFinishesLater = sizeof(Staged) == 2;
};

// Lines [from, end) of a warp in the tile at `place`, whose first one is the row `top`.
template <typename Tile>
struct ProductLines {
  using Staged = typename Tile::Staged;

  const Staged* staged;
  TilePlace place;
  int top, from, end;
  long long columns;  // of the product
  bool vector;        // of the groups

  // compute(row, group, sums) for the lane's groups of Width columns, of which one at least exists.
  // The sums are [product][Width].
  template <typename Compute>
  __device__ __forceinline__ void each_group(const Compute& compute) const {
    const int part = static_cast<int>(threadIdx.x & 31) * Tile::kWidth;
    if constexpr (Tile::kOneGroup) {
      if (valid(part) <= 0) return;
#pragma unroll 2
      for (int line = from; line < end; ++line) finish(line, part, compute);
    } else {
#pragma unroll 1
      for (int line = from; line < end; ++line) {
#pragma unroll
        for (int at = part; at < Tile::kColumns; at += 32 * Tile::kWidth) {
          if (valid(at) > 0) finish(line, at, compute);
        }
      }
    }
  }

  // read(batch, group) for the lane's only group, before the lines.
  template <typename Read>
  __device__ __forceinline__ void read_group(const Read& read) const {
    const int part = static_cast<int>(threadIdx.x & 31) * Tile::kWidth;
    if (valid(part) > 0) read(place.batch, group(part));
  }

 private:
  __device__ __forceinline__ long long valid(int part) const {
    return Tile::kWholeColumns ? Tile::kWidth : columns - (place.column + part);
  }

  __device__ __forceinline__ Group<Tile::kWidth> group(int part) const {
    return {place.column + part, valid(part), columns, vector};
  }

  template <typename Compute>
  __device__ __forceinline__ void finish(int line, int part, const Compute& compute) const {
    float sums[Tile::kProducts][Tile::kWidth];
    const Staged* const at = staged + line % kStagedLines<Staged> * kStagedPitch<Staged> + part;
#pragma unroll
    for (int p = 0; p < Tile::kProducts; ++p) staged_group(sums[p], at + p * Tile::kColumns);
    compute(top + line, group(part), sums);
  }
};
