// Depthwise convolutions of 16-bit floats in channels-last memory: every channel of the input
// [batch, height, width, channels] has one filter of [kernel_y, kernel_x, channels], and gives one
// channel of the result [batch, out_height, out_width, channels]. Sums are fp32.
//
// A thread computes a tile of Rows by Columns adjacent places for Width adjacent channels. It walks
// down the rows of the input under its tile and loads each row once: the row's values stay in
// registers for all places of the tile, while the next row is on its way. Neighbouring threads take
// neighbouring channels, so that loads and stores are contiguous; filters, and values that several
// tiles share, come from L1.
#pragma once

#include "device/maps/group.cuh"
#include "device/types.cuh"

__device__ constexpr int depthwise_divisor(int a, int b) {
  return b == 0 ? a : depthwise_divisor(b, a % b);
}

// Width: channels of a thread, which divide the channels; all pointers are then aligned to as many
// elements.
template <typename T_, int Width_, int Rows_, int Columns_, int KernelY_, int KernelX_,
          int StrideY_, int StrideX_, int DilationY_, int DilationX_>
struct DepthwiseTile {
  using T = T_;
  static constexpr int Width = Width_, Rows = Rows_, Columns = Columns_;
  static constexpr int KernelY = KernelY_, KernelX = KernelX_;
  static constexpr int StrideY = StrideY_, StrideX = StrideX_;
  static constexpr int DilationY = DilationY_, DilationX = DilationX_;
  // The part of the input under a thread's tile, and the distance of the rows that it needs.
  static constexpr int WindowRows = (Rows - 1) * StrideY + (KernelY - 1) * DilationY + 1;
  static constexpr int WindowColumns = (Columns - 1) * StrideX + (KernelX - 1) * DilationX + 1;
  static constexpr int RowStep = Rows == 1 ? DilationY : depthwise_divisor(StrideY, DilationY);
  // Rows of one element are loaded several steps ahead of their use.
  static constexpr int Ahead = WindowColumns == 1 && KernelY > 3 ? 4 : 1;
  // Small kernels are unrolled along y as well.
  static constexpr int Unroll = KernelY <= 3 ? WindowRows : 1;
  static_assert(Width == 1 || Width == 2 || Width == 4 || Width == 8);
};

// Threads of a block: groups · columns · rows or more, for `groups` groups of Width channels and
// columns · rows tiles. The grid has ⌈channels / (groups · Width)⌉ · ⌈out_width / (columns ·
// Columns)⌉ · ⌈out_height / (rows · Rows)⌉ · batch blocks.
struct DepthwiseSizes {
  int batch, channels;
  int height, width, out_height, out_width;
  int pad_y, pad_x;  // zeros before the first row and column
  int groups, columns, rows;
};

template <typename Tile>
class Depthwise {
 public:
  using T = typename Tile::T;

  __device__ __forceinline__ Depthwise(const T* input, const T* filters,
                                       const DepthwiseSizes& sizes)
      : filters_(filters), sizes_(sizes) {
    constexpr int kWidth = Tile::Width;
    const int thread = static_cast<int>(threadIdx.x), tile = thread / sizes.groups;
    const int slabs = blocks(sizes.channels, sizes.groups * kWidth);
    const int across = blocks(sizes.out_width, sizes.columns * Tile::Columns);
    const int down = blocks(sizes.out_height, sizes.rows * Tile::Rows);
    int block = static_cast<int>(blockIdx.x);
    channel_ = (block % slabs * sizes.groups + thread % sizes.groups) * kWidth;
    block /= slabs;
    x_ = (block % across * sizes.columns + tile % sizes.columns) * Tile::Columns;
    block /= across;
    y_ = (block % down * sizes.rows + tile / sizes.columns) * Tile::Rows;
    image_ = block / down;
    active_ = channel_ < sizes.channels && tile < sizes.columns * sizes.rows;
    top_ = y_ * Tile::StrideY - sizes.pad_y;
    left_ = x_ * Tile::StrideX - sizes.pad_x;
    line_ = static_cast<long long>(sizes.width) * sizes.channels;
    window_ = input + (static_cast<long long>(image_) * sizes.height + top_) * line_ +
              static_cast<long long>(left_) * sizes.channels + channel_;
  }

  // Calls finish(image, group, y, x, sums) once for each place of the result and each group of
  // Width channels, with float (&sums)[Width]. `vector`: as in Group.
  template <typename Finish>
  __device__ __forceinline__ void run(bool vector, Finish finish) {
    constexpr int kRows = Tile::Rows, kColumns = Tile::Columns, kWidth = Tile::Width;
    float sums[kRows][kColumns][kWidth];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
#pragma unroll
        for (int w = 0; w < kWidth; ++w) sums[r][c][w] = 0;
      }
    }
    constexpr int kAhead = Tile::Ahead, kStep = Tile::RowStep;
    Values next[kAhead][Tile::WindowColumns];
#pragma unroll
    for (int a = 0; a < kAhead; ++a) load_row(next[a], a * kStep);
#pragma unroll Tile::Unroll
    for (int first = 0; first < Tile::WindowRows; first += kAhead * kStep) {
#pragma unroll
      for (int a = 0; a < kAhead; ++a) {
        const int row = first + a * kStep, later = row + kAhead * kStep;
        float values[Tile::WindowColumns][kWidth];
#pragma unroll
        for (int p = 0; p < Tile::WindowColumns; ++p) convert(values[p], next[a][p]);
        if (later < Tile::WindowRows) load_row(next[a], later);
        if (row < Tile::WindowRows && inside(row)) add_row(sums, values, row);
      }
    }
    if (!active_) return;
    const Group<kWidth> group{channel_, kWidth, sizes_.channels, vector};
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        if (y_ + r < sizes_.out_height && x_ + c < sizes_.out_width) {
          finish(image_, group, y_ + r, x_ + c, sums[r][c]);
        }
      }
    }
  }

 private:
  using Values = Pack<T, Tile::Width>;

  static __device__ __forceinline__ int blocks(int size, int block) {
    return (size + block - 1) / block;
  }

  static __device__ __forceinline__ void load(Values& values, const T* from) {
    values.words[0] = *reinterpret_cast<const typename Values::Word*>(from);
  }

  static __device__ __forceinline__ void convert(float (&to)[Tile::Width], const Values& from) {
#pragma unroll
    for (int w = 0; w < Tile::Width; ++w) to[w] = Element<T>::get(from.elements[w]);
  }

  // Whether the input has this row of the window.
  __device__ __forceinline__ bool inside(int row) const {
    return active_ && static_cast<unsigned>(top_ + row) < static_cast<unsigned>(sizes_.height);
  }

  // A row of the window, with zeros outside of the input.
  __device__ __forceinline__ void load_row(Values (&values)[Tile::WindowColumns], int row) const {
    const unsigned width = inside(row) ? sizes_.width : 0;
    const T* from = window_ + row * line_;
#pragma unroll
    for (int p = 0; p < Tile::WindowColumns; ++p) {
      values[p].words[0] = {};
      if (static_cast<unsigned>(left_ + p) < width) load(values[p], from + p * sizes_.channels);
    }
  }

  __device__ __forceinline__ void load_tap(float (&to)[Tile::Width], int tap) const {
    Values values;
    load(values, filters_ + static_cast<long long>(tap) * sizes_.channels + channel_);
    convert(to, values);
  }

  // Adds the products of a row of the window to the sums of all places that it is under.
  __device__ __forceinline__ void add_row(float (&sums)[Tile::Rows][Tile::Columns][Tile::Width],
                                          const float (&values)[Tile::WindowColumns][Tile::Width],
                                          int row) const {
#pragma unroll
    for (int r = 0; r < Tile::Rows; ++r) {
      const int from = row - r * Tile::StrideY;
      if (from < 0 || from >= Tile::KernelY * Tile::DilationY || from % Tile::DilationY != 0) {
        continue;
      }
      add(sums[r], values, from / Tile::DilationY);
    }
  }

  // Adds the products of a row of the input and row `tap_y` of the filters.
  __device__ __forceinline__ void add(float (&sums)[Tile::Columns][Tile::Width],
                                      const float (&values)[Tile::WindowColumns][Tile::Width],
                                      int tap_y) const {
#pragma unroll
    for (int tap_x = 0; tap_x < Tile::KernelX; ++tap_x) {
      float taps[Tile::Width];
      load_tap(taps, tap_y * Tile::KernelX + tap_x);
#pragma unroll
      for (int c = 0; c < Tile::Columns; ++c) {
        const auto& at = values[c * Tile::StrideX + tap_x * Tile::DilationX];
#pragma unroll
        for (int w = 0; w < Tile::Width; ++w) sums[c][w] = fmaf(at[w], taps[w], sums[c][w]);
      }
    }
  }

  const T* filters_;
  const T* window_;  // where the window starts, which may be outside of the input
  DepthwiseSizes sizes_;
  long long line_;
  int channel_;
  int image_, y_, x_, top_, left_;
  bool active_;
};
