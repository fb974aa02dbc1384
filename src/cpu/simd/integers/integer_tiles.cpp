// Integer products by tiles of 16 rows of 64 bytes (AMX), four tiles of C at a time.
#include "cpu/simd/integers/integer_gemm.h"
#include "cpu/simd/isa.h"

#if RF_VECTOR_BYTES == 64 && defined(__linux__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("amx-tile,amx-int8"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("amx-tile,amx-int8")
#endif

#include "cpu/simd/integers/integer_block.h"

namespace redfuser::cpu::RF_ISA {
namespace {

struct TileDot {
  using Left = uint8_t;
  static constexpr int64_t kDepth = 64;
};
constexpr int64_t kTileRows = 16, kTileColumns = 16, kFewRows = 6;
static_assert(kIntegerPanel == 2 * kTileColumns);

// Tiles 0 to 3 are of C, 4 and 5 of A, 6 and 7 of the panel.
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t column_bytes[16] = {};
  uint8_t rows[16] = {};

  TileConfig(int64_t upper, int64_t lower) {
    const int64_t heights[8] = {upper, upper, lower, lower, upper, lower, kTileRows, kTileRows};
    for (int i = 0; i < 8; ++i) {
      column_bytes[i] = heights[i] > 0 ? 64 : 0;
      rows[i] = static_cast<uint8_t>(heights[i]);
    }
  }
};

// kOffsets: the rows of a tile of B are equally spaced groups of an image.
template <bool kLeftSigned, bool kOffsets, bool kTwoRows>
void tile_block(const IntegerMultiplyArgs& g, int64_t i, int64_t j) {
  constexpr int64_t kPanelBytes = 4 * kIntegerPanel;
  const char* a = static_cast<const char*>(g.a) + i * g.a_stride;
  const char* panel = static_cast<const char*>(g.b) + j * (kOffsets ? 4 : g.depth);
  const auto spacing =
      static_cast<size_t>(kOffsets ? g.group_offsets[1] - g.group_offsets[0] : kPanelBytes);
  if (g.starts) {
    alignas(64) int32_t starts[2 * kTileRows][kTileColumns];
    for (int64_t r = 0; r < (kTwoRows ? 2 * kTileRows : kTileRows); ++r) {
      const int32_t start = i + r < g.m ? g.starts[i + r] : 0;
      for (int64_t c = 0; c < kTileColumns; ++c) starts[r][c] = start;
    }
    // The loads of tiles do not tell compilers that they read memory.
    __asm__ volatile("" : : "r"(starts) : "memory");
    _tile_loadd(0, starts, sizeof(starts[0]));
    _tile_loadd(1, starts, sizeof(starts[0]));
    if (kTwoRows) {
      _tile_loadd(2, starts[kTileRows], sizeof(starts[0]));
      _tile_loadd(3, starts[kTileRows], sizeof(starts[0]));
    }
  } else {
    _tile_zero(0);
    _tile_zero(1);
    if (kTwoRows) {
      _tile_zero(2);
      _tile_zero(3);
    }
  }
  for (int64_t k = 0; k < g.depth; k += TileDot::kDepth) {
    const char* b = panel + (kOffsets ? g.group_offsets[k / 4] : k / 4 * kPanelBytes);
    _tile_loadd(4, a + k, static_cast<size_t>(g.a_stride));
    _tile_loadd(6, b, spacing);
    _tile_loadd(7, b + kPanelBytes / 2, spacing);
    if (kTwoRows) _tile_loadd(5, a + kTileRows * g.a_stride + k, static_cast<size_t>(g.a_stride));
    if (kLeftSigned) {
      _tile_dpbsud(0, 4, 6);
      _tile_dpbsud(1, 4, 7);
      if (kTwoRows) {
        _tile_dpbsud(2, 5, 6);
        _tile_dpbsud(3, 5, 7);
      }
    } else {
      _tile_dpbusd(0, 4, 6);
      _tile_dpbusd(1, 4, 7);
      if (kTwoRows) {
        _tile_dpbusd(2, 5, 6);
        _tile_dpbusd(3, 5, 7);
      }
    }
  }
  const auto stride = static_cast<size_t>(g.c_stride * 4);
  int32_t* c = g.c + i * g.c_stride + j;
  _tile_stored(0, c, stride);
  _tile_stored(1, c + kTileColumns, stride);
  if (kTwoRows) {
    _tile_stored(2, c + kTileRows * g.c_stride, stride);
    _tile_stored(3, c + kTileRows * g.c_stride + kTileColumns, stride);
  }
}

template <bool kLeftSigned, bool kOffsets>
void multiply_rows(const IntegerMultiplyArgs& g) {
  int64_t i = 0;
  const auto rows = [&](int64_t upper, int64_t lower) {
    const TileConfig config(upper, lower);
    _tile_loadconfig(&config);
  };
  if (g.m >= 2 * kTileRows) {
    rows(kTileRows, kTileRows);
    const int64_t whole = g.m / (2 * kTileRows) * (2 * kTileRows);
    for (int64_t j = 0; j < g.n; j += kIntegerPanel)
      for (i = 0; i < whole; i += 2 * kTileRows) tile_block<kLeftSigned, kOffsets, true>(g, i, j);
  }
  const int64_t rest = g.m - i;
  if (rest > kTileRows) {
    rows(kTileRows, rest - kTileRows);
    for (int64_t j = 0; j < g.n; j += kIntegerPanel)
      tile_block<kLeftSigned, kOffsets, true>(g, i, j);
  } else if (rest > 0) {
    rows(rest, 0);
    for (int64_t j = 0; j < g.n; j += kIntegerPanel)
      tile_block<kLeftSigned, kOffsets, false>(g, i, j);
  }
  _tile_release();
}

void multiply_tiles(const IntegerMultiplyArgs& g) {
  if (g.m <= kFewRows) return multiply_by_dots(g);
  if (g.group_offsets) {
    g.left_signed ? multiply_rows<true, true>(g) : multiply_rows<false, true>(g);
  } else {
    g.left_signed ? multiply_rows<true, false>(g) : multiply_rows<false, false>(g);
  }
}
void pack_tile_rows(const IntegerPackArgs& p) { pack_rows_of<TileDot>(p); }
void pack_tile_columns(const IntegerPackArgs& p) { pack_columns_of<TileDot>(p); }

}  // namespace
}  // namespace redfuser::cpu::RF_ISA

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace redfuser::cpu::RF_ISA {
namespace {

void interleave_by_dots(const IntegerInterleaveArgs& args) { dot_kernels()->interleave(args); }

// Tiles are part of a thread's state, which Linux extends on request only.
bool has_tiles() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  const bool known = (d >> 24 & 1) != 0 && (d >> 25 & 1) != 0;  // AMX-TILE, AMX-INT8
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return known && dot_kernels()->runs() &&
         syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

constexpr IntegerKernels kKernels = {RF_ISA_NAME " tdpbusd", has_tiles,      1,
                                     TileDot::kDepth,        kIntegerPanel,  pack_tile_rows,
                                     pack_tile_columns,      multiply_tiles, quantize_integers,
                                     interleave_by_dots,     nullptr};

}  // namespace

const IntegerKernels* tile_kernels() { return &kKernels; }

}  // namespace redfuser::cpu::RF_ISA
#else
namespace redfuser::cpu::RF_ISA {
const IntegerKernels* tile_kernels() { return nullptr; }
}  // namespace redfuser::cpu::RF_ISA
#endif
