// The tile of a convolution of 16-bit floats and its copies to shared memory
// (device/convolution/convolution.cuh).
#pragma once

#include "device/ptx.cuh"

// T: half_t or bfloat_t. Positions, Filters: of the tile. Depth: of the contracted axis in a stage
// of the ring. Blocks: of a cluster, which divide that axis.
template <typename T_, int Positions_, int Filters_, int PositionWarps_, int FilterWarps_,
          int Depth_, int Stages_, int Blocks_>
struct ConvolutionTile {
  using T = T_;
  static constexpr int Positions = Positions_, Filters = Filters_;
  static constexpr int PositionWarps = PositionWarps_, FilterWarps = FilterWarps_;
  static constexpr int Depth = Depth_, Stages = Stages_, Blocks = Blocks_;
  static constexpr int Warps = PositionWarps * FilterWarps, Threads = Warps * 32;
  // Groups of 16 positions and of 16 filters of a warp.
  static constexpr int PositionGroups = Positions / PositionWarps / 16;
  static constexpr int FilterGroups = Filters / FilterWarps / 16;
  // Of 16 bytes.
  static constexpr int Pieces = Depth / 8;
  static constexpr int PositionBytes = Positions * Depth * 2, FilterBytes = Filters * Depth * 2;
  static constexpr int StageBytes = PositionBytes + FilterBytes;
  // Sums take the ring's place. Their rows start in different banks.
  static constexpr int SumPitch = Filters + 8;
  static constexpr int SumBytes = Positions * SumPitch * 4;
  static constexpr int Bytes = Stages * StageBytes > SumBytes ? Stages* StageBytes : SumBytes;
  static_assert(Positions % (16 * PositionWarps) == 0 && Filters % (16 * FilterWarps) == 0);
  static_assert(Threads % Pieces == 0 && Positions % Blocks == 0 && Pieces <= 8);
};

// Of a convolution of [batch, height, width, pitch] with [groups · filters, kernel_y, kernel_x,
// channels]: a group of channels and of filters after the other.
struct ConvolutionSizes {
  int batch, height, width, channels, pitch;
  int groups, filters, out_height, out_width;
  int kernel_y, kernel_x, stride_y, stride_x, dilation_y, dilation_x, pad_y, pad_x;

  __device__ __forceinline__ int positions() const { return batch * out_height * out_width; }
  __device__ __forceinline__ int depth() const { return kernel_y * kernel_x * channels; }
};

// The byte of a piece among rows of pieces. Equal pieces of 8 consecutive rows are in different
// banks.
template <int Pieces>
__device__ __forceinline__ int piece_at(int row, int piece) {
  constexpr int kEvery = 8 / Pieces;
  return (row * Pieces + (piece ^ (row / kEvery % Pieces))) * 16;
}

// Copies the windows of a tile's positions. A thread has one piece of every kStep-th row of a
// stage, so that all its rows are at one tap and one channel. Places in the input are counted in
// pieces: its elements may be more than an int counts.
template <typename Tile>
class WindowCopies {
 public:
  using T = typename Tile::T;

  // From element `depth` of the contracted axis on.
  __device__ __forceinline__ WindowCopies(const T* input, const ConvolutionSizes& sizes,
                                          int position, int depth)
      : input_(input), sizes_(sizes) {
    const int plane = sizes.out_height * sizes.out_width;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int at = position + row(i), image = at / plane, inside = at % plane;
      y_[i] = at < sizes.positions() ? inside / sizes.out_width * sizes.stride_y - sizes.pad_y
                                     : kOutside;
      x_[i] = inside % sizes.out_width * sizes.stride_x - sizes.pad_x;
      start_[i] = ((image * sizes.height + y_[i]) * sizes.width + x_[i]) * (sizes.pitch / 8);
    }
    const int at = depth / 8 + piece(), tap = at / channels();
    channel_ = at % channels();
    tap_x_ = tap % sizes.kernel_x;
    tap_y_ = tap / sizes.kernel_x;
  }

  // The next stage of the contracted axis.
  __device__ __forceinline__ void load(char* stage) {
    const int y = tap_y_ * sizes_.dilation_y, x = tap_x_ * sizes_.dilation_x;
    const int shift = (y * sizes_.width + x) * (sizes_.pitch / 8) + channel_;
    const bool inside = tap_y_ < sizes_.kernel_y;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const bool valid = inside &&
                         static_cast<unsigned>(y_[i] + y) < static_cast<unsigned>(sizes_.height) &&
                         static_cast<unsigned>(x_[i] + x) < static_cast<unsigned>(sizes_.width);
      ptx_copy_async(stage + piece_at<Tile::Pieces>(row(i), piece()),
                     input_ + (valid ? 8ll * (start_[i] + shift) : 0), valid);
    }
    channel_ += Tile::Pieces;
    while (channel_ >= channels()) {
      channel_ -= channels();
      if (++tap_x_ == sizes_.kernel_x) {
        tap_x_ = 0;
        ++tap_y_;
      }
    }
  }

 private:
  static constexpr int kStep = Tile::Threads / Tile::Pieces, kRows = Tile::Positions / kStep;
  static constexpr int kOutside = -(1 << 30);
  static_assert(Tile::Positions % kStep == 0);

  __device__ __forceinline__ int channels() const { return sizes_.channels / 8; }
  static __device__ __forceinline__ int piece() {
    return static_cast<int>(threadIdx.x) % Tile::Pieces;
  }
  static __device__ __forceinline__ int row(int i) {
    return static_cast<int>(threadIdx.x) / Tile::Pieces + i * kStep;
  }

  const T* input_;
  const ConvolutionSizes& sizes_;
  int y_[kRows], x_[kRows], start_[kRows];
  int channel_, tap_y_, tap_x_;  // of the next copy; a channel is the first of a piece's, / 8
};

// Copies the filters of a tile, rows of the contracted axis.
template <typename Tile>
class FilterCopies {
 public:
  using T = typename Tile::T;

  // `filters`: the group's.
  __device__ __forceinline__ FilterCopies(const T* filters, const ConvolutionSizes& sizes,
                                          int filter, int depth)
      : filters_(filters), depth_(sizes.depth()), at_(depth + piece() * 8) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int own = filter + row(i);
      start_[i] = row(i) < Tile::Filters && own < sizes.filters ? own * depth_ : -1;
    }
  }

  __device__ __forceinline__ void load(char* stage) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      if (Tile::Filters % kStep != 0 && row(i) >= Tile::Filters) break;
      const bool valid = start_[i] >= 0 && at_ < depth_;
      ptx_copy_async(stage + piece_at<Tile::Pieces>(row(i), piece()),
                     filters_ + (valid ? start_[i] + at_ : 0), valid);
    }
    at_ += Tile::Depth;
  }

 private:
  static constexpr int kStep = Tile::Threads / Tile::Pieces;
  static constexpr int kRows = (Tile::Filters + kStep - 1) / kStep;

  static __device__ __forceinline__ int piece() {
    return static_cast<int>(threadIdx.x) % Tile::Pieces;
  }
  static __device__ __forceinline__ int row(int i) {
    return static_cast<int>(threadIdx.x) / Tile::Pieces + i * kStep;
  }

  const T* filters_;
  int start_[kRows];
  int depth_, at_;
};
