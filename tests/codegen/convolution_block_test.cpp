// Blocks of convolutions, src/device/convolution/convolution.cuh, on the host: a thread for each of
// the device's. Results are those of the sums in double precision.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <barrier>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace host_blocks {

struct Dim {
  unsigned x;
};
struct float2 {
  float x, y;
};
struct uint2 {
  unsigned x, y;
};
struct uint4 {
  unsigned x, y, z, w;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline int min(int a, int b) { return std::min(a, b); }
inline float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
inline float __int_as_float(int bits) { return std::bit_cast<float>(bits); }
inline unsigned __float_as_uint(float value) { return std::bit_cast<unsigned>(value); }

struct Block {
  Block(int bytes, int threads)
      : memory(static_cast<size_t>(bytes) + 128, '\xa5'),
        meeting(threads),
        lanes(static_cast<size_t>(threads)) {
    for (int i = 0; i < threads / 32; ++i) warps.push_back(std::make_unique<std::barrier<>>(32));
  }
  char* shared() {
    return memory.data() + (128 - reinterpret_cast<uintptr_t>(memory.data()) % 128) % 128;
  }
  // What a lane shows to its warp: an address, or operands of a product.
  struct Lane {
    unsigned address, a[4], b[2];
  };
  std::vector<char> memory;
  std::barrier<> meeting;
  std::vector<Lane> lanes;
  std::vector<std::unique_ptr<std::barrier<>>> warps;
};

thread_local Dim threadIdx, blockIdx;
thread_local Block* own = nullptr;

inline void __syncthreads() { own->meeting.arrive_and_wait(); }
inline unsigned ptx_shared_address(const void* p) {
  return static_cast<unsigned>(static_cast<const char*>(p) - own->shared());
}
inline void ptx_copy_async(void* to, const void* from, bool valid) {
  if (valid) std::memcpy(to, from, 16);
  if (!valid) std::memset(to, 0, 16);
}
inline void ptx_copy_commit() {}
template <int Pending>
void ptx_copy_wait() {}

// Calls use(lanes) with what all lanes of the warp show.
template <typename Use>
void with_warp(const Block::Lane& lane, Use use) {
  Block::Lane* lanes = own->lanes.data() + threadIdx.x / 32 * 32;
  std::barrier<>& warp = *own->warps[threadIdx.x / 32];
  lanes[threadIdx.x % 32] = lane;
  warp.arrive_and_wait();
  use(static_cast<const Block::Lane*>(lanes));
  warp.arrive_and_wait();
}

// Lane l has word l % 4 of row l / 4 of each of four matrices; lanes 8 i to 8 i + 7 have the
// addresses of matrix i's rows.
inline void ptx_load_matrix(unsigned (&r)[4], unsigned address) {
  const unsigned lane = threadIdx.x % 32;
  with_warp({address, {}, {}}, [&](const Block::Lane* lanes) {
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned from = lanes[8 * i + lane / 4].address + lane % 4 * 4;
      std::memcpy(&r[i], own->shared() + from, 4);
    }
  });
}

inline float half_value(unsigned bits) {
  return static_cast<float>(std::bit_cast<_Float16>(static_cast<uint16_t>(bits)));
}
inline float bfloat_value(unsigned bits) { return std::bit_cast<float>(bits << 16); }
inline float ptx_half_to_float(unsigned short bits) { return half_value(bits); }
inline unsigned short ptx_float_to_half(float value) {
  return std::bit_cast<uint16_t>(static_cast<_Float16>(value));
}
inline unsigned short ptx_float_to_bfloat(float value) {
  return static_cast<unsigned short>(std::bit_cast<unsigned>(value) >> 16);
}
inline float tf32_value(unsigned bits) { return std::bit_cast<float>(bits & ~0x1fffu); }
inline float ptx_round_to_tf32(float x) { return tf32_value(std::bit_cast<unsigned>(x) + 0x1000); }

// The tensor cores truncate their sums.
inline float truncated(double sum) {
  const auto nearest = static_cast<float>(sum);
  return std::abs(static_cast<double>(nearest)) <= std::abs(sum) ? nearest
                                                                 : std::nextafter(nearest, 0.0f);
}

// mma.sync of words of 32 bits: lane 4 g + q has a's words q of rows g and g + 8, and q + 4 of
// both, b's of column g, and c of columns 2 q and 2 q + 1. `product`: the sum of a word's products.
template <typename Product>
void multiply_words(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1,
                    Product product) {
  const unsigned lane = threadIdx.x % 32;
  with_warp({0, {a[0], a[1], a[2], a[3]}, {b0, b1}}, [&](const Block::Lane* lanes) {
    for (unsigned x = 0; x < 4; ++x) {
      double sum = c[x];
      for (unsigned word = 0; word < 8; ++word) {
        const Block::Lane& row = lanes[lane / 4 * 4 + word % 4];
        const Block::Lane& column = lanes[(lane % 4 * 2 + x % 2) * 4 + word % 4];
        sum += product(row.a[word / 4 * 2 + x / 2], column.b[word / 4]);
      }
      c[x] = truncated(sum);
    }
  });
}
template <typename Value>
auto of_halves(Value value) {
  return [value](unsigned a, unsigned b) {
    return static_cast<double>(value(a & 0xffff)) * value(b & 0xffff) +
           static_cast<double>(value(a >> 16)) * value(b >> 16);
  };
}
inline void ptx_mma_half(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  multiply_words(c, a, b0, b1, of_halves(half_value));
}
inline void ptx_mma_bfloat(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  multiply_words(c, a, b0, b1, of_halves(bfloat_value));
}
inline void ptx_mma_tf32(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  multiply_words(c, a, b0, b1, [](unsigned x, unsigned y) {
    return static_cast<double>(tf32_value(x)) * tf32_value(y);
  });
}

#define __device__
#define __host__
#define __forceinline__ inline
#include "device/convolution/convolution.cuh"
#undef __forceinline__
#undef __host__
#undef __device__

// Element [position, filter of all groups] of a result, and the sum of its terms' magnitudes.
struct Exact {
  double sum, magnitude;
};

template <typename T>
Exact exact_at(const ConvolutionSizes& s, const std::vector<T>& x, const std::vector<T>& w,
               int position, int filter) {
  const int at_x = position % s.out_width, at_y = position / s.out_width % s.out_height;
  const int at_z = position / s.out_width / s.out_height % s.out_planes;
  const int image = position / s.out_width / s.out_height / s.out_planes;
  Exact exact{0, 0};
  for (int k = 0; k < s.depth(); ++k) {
    const int channel = k % s.channels, tap = k / s.channels;
    const int ix = at_x * s.stride_x + tap % s.kernel_x * s.dilation_x - s.pad_x;
    const int iy = at_y * s.stride_y + tap / s.kernel_x % s.kernel_y * s.dilation_y - s.pad_y;
    const int iz = at_z * s.stride_z + tap / s.kernel_x / s.kernel_y * s.dilation_z - s.pad_z;
    if (ix < 0 || iy < 0 || iz < 0 || ix >= s.width || iy >= s.height || iz >= s.planes) continue;
    const int place = ((image * s.planes + iz) * s.height + iy) * s.width + ix;
    const T& a =
        x[static_cast<size_t>(place * s.pitch + filter / s.filters * s.channels + channel)];
    const T& b = w[static_cast<size_t>(filter * s.depth() + k)];
    const double product = static_cast<double>(Element<T>::get(a)) * Element<T>::get(b);
    exact.sum += product;
    exact.magnitude += std::abs(product);
  }
  return exact;
}

template <typename T>
std::vector<T> drawn(size_t count, std::mt19937& random) {
  std::uniform_real_distribution<float> numbers(-1, 1);
  std::vector<T> result(count);
  for (T& each : result) each = Element<T>::put(numbers(random));
  return result;
}

// The result of all blocks.
template <typename Tile>
std::vector<float> convolved(const ConvolutionSizes& s, const std::vector<typename Tile::T>& x,
                             const std::vector<typename Tile::T>& w) {
  const int pitch = s.groups * s.filters;
  std::vector<float> y(static_cast<size_t>(s.positions() * pitch), NAN);
  const int blocks = (s.positions() + Tile::Positions - 1) / Tile::Positions * s.groups *
                     ((s.filters + Tile::Filters - 1) / Tile::Filters);
  for (int at = 0; at < blocks; ++at) {
    Block block(Tile::Bytes, Tile::Threads);
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < Tile::Threads; ++i) {
      threads.emplace_back([&, i] {
        threadIdx.x = i;
        blockIdx.x = static_cast<unsigned>(at);
        own = &block;
        Convolution<Tile> convolution(block.shared(), x.data(), w.data(), s);
        convolution.multiply();
        convolution.finish(false, [&](long long at, const Group<8>& group, float(&sums)[8]) {
          auto values = group.values(y.data());
          group.each([&](int v, long long) { values[v] = sums[v]; });
          group.store(y.data(), at * pitch, values);
        });
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  return y;
}

// The largest error of a result's element, relative to the sum of its terms' magnitudes.
template <typename Tile>
double error_of(const ConvolutionSizes& s) {
  using T = typename Tile::T;
  std::mt19937 random(5);
  const auto x =
      drawn<T>(static_cast<size_t>(s.batch * s.planes * s.height * s.width * s.pitch), random);
  const auto w = drawn<T>(static_cast<size_t>(s.groups * s.filters * s.depth()), random);
  const std::vector<float> y = convolved<Tile>(s, x, w);
  const int pitch = s.groups * s.filters;
  double largest = 0;
  for (int position = 0; position < s.positions(); ++position) {
    for (int filter = 0; filter < pitch; ++filter) {
      const Exact exact = exact_at(s, x, w, position, filter);
      const double got = y[static_cast<size_t>(position * pitch + filter)];
      const double error = std::abs(got - exact.sum) / std::max(exact.magnitude, 1e-30);
      if (!(error <= largest)) largest = std::isnan(error) ? HUGE_VAL : error;
    }
  }
  return largest;
}

// Two groups, pads, strides, dilations and a number of filters that no tile divides.
template <typename T>
ConvolutionSizes image() {
  const int channels = 5 * 16 / static_cast<int>(sizeof(T));
  return {2, 1, 7, 6, channels, 2 * channels, 2, 40, 1, 4, 5, 1, 3, 2, 1, 2, 1, 1, 1, 2, 0, 1, 1};
}
template <typename T>
ConvolutionSizes volume() {
  const int channels = 3 * 16 / static_cast<int>(sizeof(T));
  return {2, 4, 5, 6, channels, channels, 1, 16, 2, 5, 6, 2, 3, 3, 2, 1, 1, 1, 1, 1, 0, 1, 1};
}

constexpr double kHalves = 0x1p-20, kFloats = 0x1p-21, kRounded = 0x1p-10;

TEST(ConvolutionBlocks, MultiplyHalves) {
  EXPECT_LE((error_of<ConvolutionTile<half_t, 64, 32, 2, 1, 64, 4, 1, 2, 1>>(image<half_t>())),
            kHalves);
  EXPECT_LE((error_of<ConvolutionTile<bfloat_t, 64, 32, 2, 1, 64, 4, 1, 3, 1>>(volume<bfloat_t>())),
            kHalves);
}

// One product by TF32 instead of three would be off by more than a thousandth of a float's half.
TEST(ConvolutionBlocks, MultiplyFloats) {
  EXPECT_LE((error_of<ConvolutionTile<float, 64, 32, 2, 1, 32, 4, 1, 2, 2>>(image<float>())),
            kFloats);
  EXPECT_LE((error_of<ConvolutionTile<float, 64, 64, 2, 2, 32, 4, 1, 3, 2>>(volume<float>())),
            kFloats);
}

TEST(ConvolutionBlocks, MultiplyRoundedFloats) {
  const double error =
      error_of<ConvolutionTile<float, 64, 32, 2, 1, 32, 4, 1, 2, 1>>(image<float>());
  EXPECT_LE(error, kRounded);
  EXPECT_GE(error, 8 * kFloats);
}

}  // namespace host_blocks
