// The tile of a convolution of floats and its copies to shared memory
// (device/convolution/convolution.cuh).
#pragma once

#include "device/ptx.cuh"

// T: half_t, bfloat_t or float. Positions, Filters: of the tile. Depth: of the contracted axis in a
// stage of the ring. Blocks: of a cluster, which divide that axis. Spatial: dimensions of an image,
// 2 or 3. Parts: of an operand, as the tensor cores multiply it; floats have 1 or 2
// (device/product/tf32_parts.cuh), others 1.
template <typename T_, int Positions_, int Filters_, int PositionWarps_, int FilterWarps_,
          int Depth_, int Stages_, int Blocks_, int Spatial_, int Parts_>
struct ConvolutionTile {
  using T = T_;
  static constexpr int Positions = Positions_, Filters = Filters_;
  static constexpr int PositionWarps = PositionWarps_, FilterWarps = FilterWarps_;
  static constexpr int Depth = Depth_, Stages = Stages_, Blocks = Blocks_;
  static constexpr int Spatial = Spatial_, Parts = Parts_;
  static constexpr int Warps = PositionWarps * FilterWarps, Threads = Warps * 32;
  // Groups of 16 positions and of 16 filters of a warp.
  static constexpr int PositionGroups = Positions / PositionWarps / 16;
  static constexpr int FilterGroups = Filters / FilterWarps / 16;
  // Of 16 bytes: so many elements, so many of a stage's row.
  static constexpr int Piece = 16 / static_cast<int>(sizeof(T)), Pieces = Depth / Piece;
  static constexpr int PositionBytes = Positions * Pieces * 16, FilterBytes = Filters * Pieces * 16;
  static constexpr int StageBytes = PositionBytes + FilterBytes;
  // Sums take the ring's place. Their rows start in different banks.
  static constexpr int SumPitch = Filters + 8;
  static constexpr int SumBytes = Positions * SumPitch * 4;
  static constexpr int Bytes = Stages * StageBytes > SumBytes ? Stages* StageBytes : SumBytes;
  static_assert(Positions % (16 * PositionWarps) == 0 && Filters % (16 * FilterWarps) == 0);
  static_assert(Threads % Pieces == 0 && Positions % Blocks == 0 && Pieces <= 8);
  static_assert(Spatial == 2 || Spatial == 3);
  static_assert(Parts == 1 || (Parts == 2 && sizeof(T) == 4));
};

// Of a convolution of [batch, planes, height, width, pitch] with [groups · filters, kernel_z,
// kernel_y, kernel_x, channels]: a group of channels and of filters after the other. With two
// dimensions planes, out_planes and all of z but the pad are 1.
struct ConvolutionSizes {
  int batch, planes, height, width, channels, pitch;
  int groups, filters, out_planes, out_height, out_width;
  int kernel_z, kernel_y, kernel_x, stride_z, stride_y, stride_x;
  int dilation_z, dilation_y, dilation_x, pad_z, pad_y, pad_x;

  __device__ __forceinline__ int positions() const {
    return batch * out_planes * out_height * out_width;
  }
  __device__ __forceinline__ int depth() const { return kernel_z * kernel_y * kernel_x * channels; }
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
      start_[i] = ((plane_at(i, image) * sizes.height + y_[i]) * sizes.width + x_[i]) *
                  (sizes.pitch / Tile::Piece);
    }
    const int at = depth / Tile::Piece + piece(), tap = at / channels();
    channel_ = at % channels();
    tap_x_ = tap % sizes.kernel_x;
    tap_y_ = tap / sizes.kernel_x;
    if constexpr (kVolume) {
      tap_z_ = tap_y_ / sizes.kernel_y;
      tap_y_ %= sizes.kernel_y;
    }
  }

  // The next stage of the contracted axis.
  __device__ __forceinline__ void load(char* stage) {
    const int y = tap_y_ * sizes_.dilation_y, x = tap_x_ * sizes_.dilation_x;
    const int z = kVolume ? tap_z_ * sizes_.dilation_z : 0;
    const int line = kVolume ? z * sizes_.height + y : y;
    const int shift = (line * sizes_.width + x) * (sizes_.pitch / Tile::Piece) + channel_;
    const bool inside = kVolume ? tap_z_ < sizes_.kernel_z : tap_y_ < sizes_.kernel_y;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const bool valid = inside && (!kVolume || within(z_[i] + z, sizes_.planes)) &&
                         within(y_[i] + y, sizes_.height) && within(x_[i] + x, sizes_.width);
      ptx_copy_async(
          stage + piece_at<Tile::Pieces>(row(i), piece()),
          input_ + (valid ? static_cast<long long>(Tile::Piece) * (start_[i] + shift) : 0), valid);
    }
    channel_ += Tile::Pieces;
    while (channel_ >= channels()) {
      channel_ -= channels();
      if (++tap_x_ == sizes_.kernel_x) {
        tap_x_ = 0;
        ++tap_y_;
      }
      if (kVolume && tap_y_ == sizes_.kernel_y) {
        tap_y_ = 0;
        ++tap_z_;
      }
    }
  }

 private:
  static constexpr int kStep = Tile::Threads / Tile::Pieces, kRows = Tile::Positions / kStep;
  static constexpr int kOutside = -(1 << 30);
  static constexpr bool kVolume = Tile::Spatial == 3;
  static_assert(Tile::Positions % kStep == 0);

  // The plane of all images where row `i` starts, which is in plane `at` of all results.
  __device__ __forceinline__ int plane_at(int i, int at) {
    if constexpr (!kVolume) return at;
    z_[i] = at % sizes_.out_planes * sizes_.stride_z - sizes_.pad_z;
    return at / sizes_.out_planes * sizes_.planes + z_[i];
  }
  static __device__ __forceinline__ bool within(int at, int size) {
    return static_cast<unsigned>(at) < static_cast<unsigned>(size);
  }
  __device__ __forceinline__ int channels() const { return sizes_.channels / Tile::Piece; }
  static __device__ __forceinline__ int piece() {
    return static_cast<int>(threadIdx.x) % Tile::Pieces;
  }
  static __device__ __forceinline__ int row(int i) {
    return static_cast<int>(threadIdx.x) / Tile::Pieces + i * kStep;
  }

  const T* input_;
  const ConvolutionSizes& sizes_;
  int z_[kVolume ? kRows : 1], y_[kRows], x_[kRows], start_[kRows];
  // Of the next copy; a channel is the first of a piece's, divided by Tile::Piece.
  int channel_, tap_z_, tap_y_, tap_x_;
};

// Copies the filters of a tile, rows of the contracted axis.
template <typename Tile>
class FilterCopies {
 public:
  using T = typename Tile::T;

  // `filters`: the group's.
  __device__ __forceinline__ FilterCopies(const T* filters, const ConvolutionSizes& sizes,
                                          int filter, int depth)
      : filters_(filters), depth_(sizes.depth()), at_(depth + piece() * Tile::Piece) {
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
