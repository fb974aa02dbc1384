// The copies of a convolution's tile, src/device/convolution/convolution_tile.cuh, on the host: one
// thread of the device after the other.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

namespace host_copies {

struct half_t {
  unsigned short bits;
};
struct Dim {
  unsigned x;
};
Dim threadIdx, blockIdx;

// What is copied, and whether a copy leaves the operand.
const char *operand = nullptr, *operand_end = nullptr;
bool leaves = false;

inline void ptx_copy_async(void* to, const void* from, bool valid) {
  const auto* first = static_cast<const char*>(from);
  leaves |= first < operand || first + 16 > operand_end;
  leaves |= reinterpret_cast<uintptr_t>(to) % 16 != 0;
  if (valid) std::memcpy(to, from, 16);
  if (!valid) std::memset(to, 0, 16);
}

#define __device__
#define __forceinline__ inline
#define __restrict__
#include "device/convolution/convolution_tile.cuh"
#undef __device__
#undef __forceinline__
#undef __restrict__

// An element by its bits.
template <typename T>
unsigned bits_of(const void* element) {
  unsigned bits = 0;
  std::memcpy(&bits, element, sizeof(T));
  return bits;
}

template <typename T>
std::vector<T> numbered(size_t count) {
  std::vector<T> numbers(count);
  for (size_t i = 0; i < count; ++i) {
    const auto bits = static_cast<unsigned>(i * 2654435769u + 7);
    std::memcpy(&numbers[i], &bits, sizeof(T));
  }
  operand = reinterpret_cast<const char*>(numbers.data());
  operand_end = operand + count * sizeof(T);
  return numbers;
}

template <typename Tile>
ConvolutionSizes random_sizes(std::mt19937& random) {
  const auto draw = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  ConvolutionSizes s{};
  s.batch = draw(1, 4);
  s.groups = draw(1, 3);
  s.channels = Tile::Piece * draw(1, 12);
  s.pitch = s.groups * s.channels;
  s.filters = draw(1, 150);
  s.height = draw(1, 20);
  s.width = draw(1, 40);
  s.kernel_y = draw(1, 5);
  s.kernel_x = draw(1, 5);
  s.stride_y = draw(1, 3);
  s.stride_x = draw(1, 3);
  s.dilation_y = draw(1, 3);
  s.dilation_x = draw(1, 3);
  s.pad_y = draw(0, 4);
  s.pad_x = draw(0, 4);
  s.out_height = draw(1, 12);
  s.out_width = draw(1, 17);
  s.planes = s.out_planes = s.kernel_z = s.stride_z = s.dilation_z = 1;
  if (Tile::Spatial == 2) return s;
  s.planes = draw(1, 6);
  s.out_planes = draw(1, 5);
  s.kernel_z = draw(1, 4);
  s.stride_z = draw(1, 3);
  s.dilation_z = draw(1, 3);
  s.pad_z = draw(0, 3);
  return s;
}

// The element of a row of a stage.
template <typename Tile>
unsigned staged(const char* stage, int row, int k) {
  using T = typename Tile::T;
  const int inside = k % Tile::Piece * static_cast<int>(sizeof(T));
  return bits_of<T>(stage + piece_at<Tile::Pieces>(row, k / Tile::Piece) + inside);
}

template <typename Tile, typename Copies>
std::vector<std::vector<char>> stages_of(int bytes, int steps, const Copies& make) {
  std::vector<std::vector<char>> stages(static_cast<size_t>(steps),
                                        std::vector<char>(static_cast<size_t>(bytes) + 16, '\xa5'));
  for (unsigned thread = 0; thread < Tile::Threads; ++thread) {
    threadIdx.x = thread;
    auto copies = make();
    for (auto& stage : stages) {
      const auto address = reinterpret_cast<uintptr_t>(stage.data());
      copies.load(stage.data() + (16 - address % 16) % 16);
    }
  }
  return stages;
}

const char* start_of(const std::vector<char>& stage) {
  return stage.data() + (16 - reinterpret_cast<uintptr_t>(stage.data()) % 16) % 16;
}

template <typename Tile>
void expect_windows(const ConvolutionSizes& s, int first_step, int position, int group) {
  using T = typename Tile::T;
  const auto input =
      numbered<T>(static_cast<size_t>(s.batch) * s.planes * s.height * s.width * s.pitch);
  const int all = (s.depth() + Tile::Depth - 1) / Tile::Depth, steps = all - first_step;
  const auto stages = stages_of<Tile>(Tile::PositionBytes, steps, [&] {
    return WindowCopies<Tile>(input.data() + group * s.channels, s, position,
                              first_step * Tile::Depth);
  });
  for (int step = 0; step < steps; ++step) {
    for (int row = 0; row < Tile::Positions; ++row) {
      const int at = position + row, plane = s.out_height * s.out_width;
      for (int i = 0; i < Tile::Depth; ++i) {
        const int k = (first_step + step) * Tile::Depth + i, tap = k / s.channels;
        const int image = at / plane / s.out_planes;
        const int z = at / plane % s.out_planes * s.stride_z +
                      tap / (s.kernel_x * s.kernel_y) * s.dilation_z - s.pad_z;
        const int y = at % plane / s.out_width * s.stride_y +
                      tap / s.kernel_x % s.kernel_y * s.dilation_y - s.pad_y;
        const int x = at % s.out_width * s.stride_x + tap % s.kernel_x * s.dilation_x - s.pad_x;
        const bool inside = at < s.positions() && k < s.depth() && z >= 0 && z < s.planes &&
                            y >= 0 && y < s.height && x >= 0 && x < s.width;
        const size_t element =
            (static_cast<size_t>(((image * s.planes + z) * s.height + y) * s.width + x)) * s.pitch +
            group * s.channels + k % s.channels;
        const unsigned expected = inside ? bits_of<T>(&input[element]) : 0;
        ASSERT_EQ(staged<Tile>(start_of(stages[static_cast<size_t>(step)]), row, i), expected)
            << step << " " << row << " " << i;
      }
    }
  }
}

template <typename Tile>
void expect_filters(const ConvolutionSizes& s, int first_step, int filter) {
  using T = typename Tile::T;
  const auto filters = numbered<T>(static_cast<size_t>(s.filters) * s.depth());
  const int all = (s.depth() + Tile::Depth - 1) / Tile::Depth, steps = all - first_step;
  const auto stages = stages_of<Tile>(Tile::FilterBytes, steps, [&] {
    return FilterCopies<Tile>(filters.data(), s, filter, first_step * Tile::Depth);
  });
  for (int step = 0; step < steps; ++step) {
    for (int row = 0; row < Tile::Filters; ++row) {
      for (int i = 0; i < Tile::Depth; ++i) {
        const int k = (first_step + step) * Tile::Depth + i;
        const bool inside = filter + row < s.filters && k < s.depth();
        const unsigned expected =
            inside ? bits_of<T>(&filters[static_cast<size_t>(filter + row) * s.depth() + k]) : 0;
        ASSERT_EQ(staged<Tile>(start_of(stages[static_cast<size_t>(step)]), row, i), expected)
            << step << " " << row << " " << i;
      }
    }
  }
}

template <typename Tile>
void expect_copies() {
  std::mt19937 random(11);
  for (int i = 0; i < 25; ++i) {
    const ConvolutionSizes s = random_sizes<Tile>(random);
    SCOPED_TRACE(fmt::format("case {}: {} channels of {} by {}, windows of {} by {}", i, s.channels,
                             s.height, s.width, s.kernel_y, s.kernel_x));
    const int steps = (s.depth() + Tile::Depth - 1) / Tile::Depth;
    const int tiles = (s.positions() + Tile::Positions - 1) / Tile::Positions;
    leaves = false;
    expect_windows<Tile>(s, i % steps, i % tiles * Tile::Positions, i % s.groups);
    expect_filters<Tile>(s, i % steps, i % 2 * Tile::Filters);
    EXPECT_FALSE(leaves);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(ConvolutionTiles, CopyWindowsAndFilters) {
  expect_copies<ConvolutionTile<half_t, 64, 32, 2, 1, 64, 4, 1, 2, 1>>();
  expect_copies<ConvolutionTile<half_t, 64, 64, 2, 2, 64, 4, 1, 2, 1>>();
  expect_copies<ConvolutionTile<half_t, 128, 32, 4, 1, 32, 4, 1, 2, 1>>();
  expect_copies<ConvolutionTile<half_t, 128, 128, 2, 4, 64, 3, 1, 2, 1>>();
  expect_copies<ConvolutionTile<float, 64, 64, 2, 2, 32, 4, 1, 2, 2>>();
  expect_copies<ConvolutionTile<float, 128, 32, 4, 1, 16, 4, 1, 2, 1>>();
}

TEST(ConvolutionTiles, CopyWindowsOfVolumes) {
  expect_copies<ConvolutionTile<half_t, 64, 32, 2, 1, 64, 4, 1, 3, 1>>();
  expect_copies<ConvolutionTile<float, 128, 64, 2, 2, 32, 3, 1, 3, 2>>();
}

}  // namespace host_copies
