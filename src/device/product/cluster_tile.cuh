// The tile of a product whose depth the blocks of a cluster divide
// (device/product/cluster_product.cuh), and what a block has in shared memory.
#pragma once

#include "device/product/product_ring.cuh"

// Rows: of the tile, 64 or 128, of which Lines exist at most and are loaded: a multiple of 8, and
// of Blocks. Columns: of each of the Products, a multiple of 64, or of 16 if ByRows: the columns
// are contiguous along the contracted axis. RowsByTerms: the rows are not (floats alone). Blocks:
// of the cluster. Resident: blocks of a multiprocessor, its own or those of the kernel after it,
// which divide its memory.
template <typename T_, int Rows, int Lines, int Columns, int Products, int Blocks, int Resident,
          bool ByRows, bool RowsByTerms = false>
struct ClusterTile {
  using T = T_;
  static constexpr int kRows = Rows, kLines = Lines, kColumns = Columns, kProducts = Products;
  static constexpr int kBlocks = Blocks;
  static constexpr bool kByRows = ByRows, kRowsByTerms = RowsByTerms;
  static constexpr int kWarps = Rows / 16, kThreads = kWarps * 32;  // that multiply
  static constexpr int kRowBytes = Rows * kSlabRowBytes;
  // Floats are two parts (part_stages.cuh): of the columns in the stage, and warps that split them.
  static constexpr bool kParts = sizeof(T) == 4;
  static constexpr int kSplitWarps = kParts ? 3 : 0;
  static constexpr int kBlockThreads = kThreads + 32 * (1 + kSplitWarps);          // one warp loads
  static constexpr int kColumnBytes = (kParts ? 2 : 1) * Columns * kSlabRowBytes;  // of one product
  static constexpr int kStageBytes = kRowBytes + Products * kColumnBytes;
  static constexpr int kLoadedLines = RowsByTerms ? (Lines + 31) / 32 * 32 : Lines;
  static constexpr int kLoadedBytes = (kLoadedLines + Products * Columns) * kSlabRowBytes;
  static constexpr int kRingBytes = (Resident > 1 ? 108 : 216) << 10, kMostStages = 8;
  static constexpr int kStages =
      kRingBytes / kStageBytes < kMostStages ? kRingBytes / kStageBytes : kMostStages;
  // Sums in fp32, in place of the ring; the first elements of rows start in different banks.
  static constexpr int kPitch = Products * Columns + 8, kSumBytes = Lines * kPitch * 4;
  static constexpr int kDataBytes = kStages * kStageBytes > kSumBytes ? kStages* kStageBytes
                                                                      : (kSumBytes + 15) / 16 * 16;
  // Rows that a block finishes, and groups of adjacent columns that a thread does.
  static constexpr int kOwnLines = Lines / Blocks;
  static constexpr int kWidth = kParts ? 4 : 8, kGroups = Columns / kWidth;
  static_assert(kParts || !RowsByTerms);
  static_assert(kStages >= 2 && Lines % 8 == 0 && Lines % Blocks == 0 && Lines <= Rows);
  static_assert(ByRows && !kParts ? Columns % 16 == 0 : Columns % kSlabColumns == 0);
};
