// The tile of a product whose depth the blocks of a cluster divide
// (device/product/cluster_product.cuh), and what a block has in shared memory.
#pragma once

#include "device/product/product_ring.cuh"

// Rows: of the tile, 64 or 128, of which Lines exist at most and are loaded: a multiple of 8, and
// of Blocks. Columns: of each of the Products, a multiple of 64, or of 16 if ByRows: the columns
// are contiguous along the contracted axis. Blocks: of the cluster. Resident:
// blocks of a multiprocessor, its own or those of the kernel after it, which divide its memory.
template <typename T_, int Rows, int Lines, int Columns, int Products, int Blocks, int Resident,
          bool ByRows>
struct ClusterTile {
  using T = T_;
  static constexpr int kRows = Rows, kLines = Lines, kColumns = Columns, kProducts = Products;
  static constexpr int kBlocks = Blocks;
  static constexpr bool kByRows = ByRows;
  static constexpr int kWarps = Rows / 16, kThreads = kWarps * 32;  // that multiply
  static constexpr int kRowBytes = Rows * kSlabRowBytes;
  static constexpr int kColumnBytes = Columns * kSlabRowBytes;  // of one product
  static constexpr int kStageBytes = kRowBytes + Products * kColumnBytes;
  static constexpr int kLoadedBytes = Lines * kSlabRowBytes + Products * kColumnBytes;
  static constexpr int kRingBytes = (Resident > 1 ? 108 : 216) << 10, kMostStages = 8;
  static constexpr int kStages =
      kRingBytes / kStageBytes < kMostStages ? kRingBytes / kStageBytes : kMostStages;
  // Sums in fp32, in place of the ring; the first elements of rows start in different banks.
  static constexpr int kPitch = Products * Columns + 8, kSumBytes = Lines * kPitch * 4;
  static constexpr int kDataBytes = kStages * kStageBytes > kSumBytes ? kStages* kStageBytes
                                                                      : (kSumBytes + 15) / 16 * 16;
  // Rows that a block finishes, and groups of 8 columns.
  static constexpr int kOwnLines = Lines / Blocks, kGroups = Columns / 8;
  static_assert(kStages >= 2 && Lines % 8 == 0 && Lines % Blocks == 0 && Lines <= Rows);
  static_assert(ByRows ? Columns % 16 == 0 : Columns % kSlabColumns == 0);
};
