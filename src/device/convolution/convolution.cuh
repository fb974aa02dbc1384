// Convolutions of floats in channels-last memory by the tensor cores, with sums in fp32, as a
// product whose left matrix is read through windows (implicit im2col):
//   y[p, f] = Σ_t Σ_c x[window(p, t), c] · w[f, t, c].
// Positions of all images are the rows, so that small planes fill tiles. The contracted axis goes
// through a ring of asynchronous copies; elements outside of an image are zeros. The blocks of a
// cluster divide that axis and add their sums in one order.
#pragma once

#include "device/convolution/convolution_products.cuh"
#include "device/convolution/convolution_tile.cuh"
#include "device/maps/group.cuh"

template <typename Tile>
class Convolution {
 public:
  using T = typename Tile::T;
  // Adjacent filters that a thread finishes together.
  static constexpr int kTogether = 8;

  // `memory`: Tile::Bytes, aligned to 16.
  __device__ __forceinline__ Convolution(char* memory, const T* input, const T* filters,
                                         const ConvolutionSizes& sizes)
      : memory_(memory), input_(input), filters_(filters), sizes_(sizes) {
    const unsigned tiles = (sizes.filters + Tile::Filters - 1) / Tile::Filters;
    unsigned at = blockIdx.x / Tile::Blocks;
    filter_ = at % tiles * Tile::Filters;
    at /= tiles;
    group_ = at % sizes.groups;
    position_ = at / sizes.groups * Tile::Positions;
  }

  // The tile's sums, into shared memory.
  __device__ __forceinline__ void multiply() {
    clear();
    const int steps = (sizes_.depth() + Tile::Depth - 1) / Tile::Depth;
    const int from = steps * rank() / Tile::Blocks, to = steps * (rank() + 1) / Tile::Blocks;
    WindowCopies<Tile> windows(input_ + group_ * sizes_.channels, sizes_, position_,
                               from * Tile::Depth);
    FilterCopies<Tile> rows(
        filters_ + static_cast<long long>(group_) * sizes_.filters * sizes_.depth(), sizes_,
        filter_, from * Tile::Depth);
    const auto load = [&](int step, int stage) {
      if (step < to) {
        char* const place = memory_ + stage * Tile::StageBytes;
        windows.load(place);
        rows.load(place + Tile::PositionBytes);
      }
      ptx_copy_commit();
    };
#pragma unroll
    for (int i = 0; i < Tile::Stages - 1; ++i) load(from + i, i);
    int stage = 0;
#pragma unroll 1
    for (int step = from; step < to; ++step) {
      ptx_copy_wait<Tile::Stages - 2>();
      __syncthreads();
      load(step + Tile::Stages - 1, stage == 0 ? Tile::Stages - 1 : stage - 1);
      add_stage(ptx_shared_address(memory_) + stage * Tile::StageBytes);
      stage = stage + 1 == Tile::Stages ? 0 : stage + 1;
    }
    ptx_copy_wait<0>();
    __syncthreads();
    store_sums();
    meet();
  }

  // Calls finish(position, group, sums) for each group of kTogether filters of the tile once, with
  // the sums of its filters; some of them may not exist. `vector`: as in Group.
  template <typename Finish>
  __device__ __forceinline__ void finish(bool vector, Finish finish) const {
    constexpr int kLanes = Tile::Filters / kTogether, kRows = Tile::Threads / kLanes;
    constexpr int kOwn = Tile::Positions / Tile::Blocks;
    const int filter = static_cast<int>(threadIdx.x) % kLanes * kTogether;
    const int end = min((rank() + 1) * kOwn, sizes_.positions() - position_);
    if (filter_ + filter < sizes_.filters) {
      const int own = filter_ + filter;
      const Group<kTogether> filters{group_ * sizes_.filters + own, sizes_.filters - own,
                                     sizes_.groups * sizes_.filters, vector};
#pragma unroll 2
      for (int row = rank() * kOwn + static_cast<int>(threadIdx.x) / kLanes; row < end;
           row += kRows) {
        float sums[kTogether];
        total(sums, row * Tile::SumPitch + filter);
        finish(static_cast<long long>(position_ + row), filters, sums);
      }
    }
    meet();
  }

  // Calls finish(position, filter, sum) for each element of the tile once; adjacent threads have
  // adjacent positions.
  template <typename Finish>
  __device__ __forceinline__ void finish_positions(Finish finish) const {
    constexpr int kOwn = Tile::Positions / Tile::Blocks;
    const int filters = min(Tile::Filters, sizes_.filters - filter_);
#pragma unroll 2
    for (int i = threadIdx.x; i < kOwn * filters; i += Tile::Threads) {
      const int row = rank() * kOwn + i % kOwn, filter = i / kOwn;
      if (position_ + row >= sizes_.positions()) continue;
      float sum[1];
      total(sum, row * Tile::SumPitch + filter);
      finish(static_cast<long long>(position_ + row),
             static_cast<long long>(group_ * sizes_.filters + filter_ + filter), sum[0]);
    }
    meet();
  }

 private:
  static __device__ __forceinline__ int lane() { return static_cast<int>(threadIdx.x) & 31; }
  static __device__ __forceinline__ int position_warp() {
    return static_cast<int>(threadIdx.x >> 5) % Tile::PositionWarps;
  }
  static __device__ __forceinline__ int filter_warp() {
    return static_cast<int>(threadIdx.x >> 5) / Tile::PositionWarps;
  }
  static __device__ __forceinline__ int rank() {
    return Tile::Blocks > 1 ? static_cast<int>(blockIdx.x % Tile::Blocks) : 0;
  }
  __device__ __forceinline__ float* sums() const { return reinterpret_cast<float*>(memory_); }

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int i = 0; i < Tile::PositionGroups; ++i) {
#pragma unroll
      for (int j = 0; j < 2 * Tile::FilterGroups; ++j) {
#pragma unroll
        for (int x = 0; x < 4; ++x) d_[i][j][x] = 0;
      }
    }
  }

  __device__ __forceinline__ void add_stage(unsigned stage) {
    using Products = ConvolutionProducts<T, Tile::Parts>;
    constexpr int kSteps = Tile::Pieces / 2;
    // Operands in two parts of several steps do not fit in registers.
    [[maybe_unused]] constexpr int kUnrolled = Tile::Parts == 2 ? 1 : kSteps;
    const unsigned filters = stage + Tile::PositionBytes;
#pragma unroll kUnrolled
    for (int k = 0; k < kSteps; ++k) {
      typename Products::Left a[Tile::PositionGroups];
#pragma unroll
      for (int i = 0; i < Tile::PositionGroups; ++i) {
        const int row = (position_warp() * Tile::PositionGroups + i) * 16 + (lane() & 15);
        unsigned words[4];
        ptx_load_matrix(words, stage + piece_at<Tile::Pieces>(row, k * 2 + (lane() >> 4)));
        Products::take(a[i], words);
      }
#pragma unroll
      for (int j = 0; j < Tile::FilterGroups; ++j) {
        const int row =
            (filter_warp() * Tile::FilterGroups + j) * 16 + (lane() & 7) + (lane() >> 4) * 8;
        unsigned words[4];
        ptx_load_matrix(words, filters + piece_at<Tile::Pieces>(row, k * 2 + ((lane() >> 3) & 1)));
        Products::add(d_, 2 * j, a, words);
      }
    }
  }

  __device__ __forceinline__ void store_sums() const {
#pragma unroll
    for (int i = 0; i < Tile::PositionGroups; ++i) {
#pragma unroll
      for (int j = 0; j < 2 * Tile::FilterGroups; ++j) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const int row = (position_warp() * Tile::PositionGroups + i) * 16 + (lane() >> 2) + 8 * h;
          const int column = (filter_warp() * 2 * Tile::FilterGroups + j) * 8 + (lane() & 3) * 2;
          *reinterpret_cast<float2*>(sums() + row * Tile::SumPitch + column) =
              make_float2(d_[i][j][2 * h], d_[i][j][2 * h + 1]);
        }
      }
    }
  }

  // All blocks of the cluster.
  static __device__ __forceinline__ void meet() {
#if __CUDA_ARCH__ >= 900
    if constexpr (Tile::Blocks > 1) {
      ptx_cluster_arrive();
      ptx_cluster_wait();
      return;
    }
#endif
    __syncthreads();
  }

  // The sums of the blocks' numbers from a place of their memory on.
  template <int Count>
  __device__ __forceinline__ void total(float (&sum)[Count], int at) const {
#if __CUDA_ARCH__ >= 900
    if constexpr (Tile::Blocks > 1) {
      const unsigned own = ptx_shared_address(sums() + at);
      float parts[Tile::Blocks][Count];
#pragma unroll
      for (unsigned block = 0; block < Tile::Blocks; ++block) {
        load_numbers(parts[block], ptx_map_shared(own, block));
      }
#pragma unroll
      for (int i = 0; i < Count; ++i) {
        sum[i] = 0;
#pragma unroll
        for (int block = 0; block < Tile::Blocks; ++block) sum[i] += parts[block][i];
      }
      return;
    }
#endif
#pragma unroll
    for (int i = 0; i < Count; ++i) sum[i] = sums()[at + i];
  }

#if __CUDA_ARCH__ >= 900
  template <int Count>
  static __device__ __forceinline__ void load_numbers(float (&to)[Count], unsigned from) {
    if constexpr (Count % 2 == 0) {
#pragma unroll
      for (int i = 0; i < Count; i += 2) {
        const unsigned long long bits = ptx_load_cluster(from + 4 * i);
        to[i] = __uint_as_float(static_cast<unsigned>(bits));
        to[i + 1] = __uint_as_float(static_cast<unsigned>(bits >> 32));
      }
    } else {
#pragma unroll
      for (int i = 0; i < Count; ++i) to[i] = ptx_load_cluster_float(from + 4 * i);
    }
  }
#endif

  char* memory_;
  const T* input_;
  const T* filters_;
  const ConvolutionSizes& sizes_;
  int position_, group_, filter_;
  float d_[Tile::PositionGroups][2 * Tile::FilterGroups][4];
};
