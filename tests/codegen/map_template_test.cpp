// The main loops of maps by themselves: src/device/maps/map.cuh on the host, where every point must
// be computed once, and compiled with functors written by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "codegen/core/device_text.h"
#include "support/codegen_harness.h"

// Device code on the host.
#define __device__
#define __forceinline__ inline
#define asm(...) static_cast<void>(a + b)
namespace map_device {
struct Dim {
  unsigned x;
};
struct uint2 {
  unsigned x, y;
};
struct uint4 {
  unsigned x, y, z, w;
};
inline float ptx_half_to_float(unsigned short bits) { return bits; }
inline unsigned short ptx_float_to_half(float x) { return static_cast<unsigned short>(x); }
inline unsigned short ptx_float_to_bfloat(float x) { return static_cast<unsigned short>(x); }
inline float __uint_as_float(unsigned bits) { return static_cast<float>(bits >> 16); }
Dim threadIdx, blockIdx, gridDim;
inline float ptx_exp2(float x) { return std::exp2(x); }
inline float ptx_reciprocal(float x) { return 1 / x; }
#include "device/maps/map.cuh"
}  // namespace map_device
#undef asm
#undef __device__
#undef __forceinline__

namespace redfuser::codegen_tests {
namespace {

using map_device::Group;
using map_device::MapBlock;
using map_device::MapBlocks;
using map_device::MapConfig;
using Counts = std::vector<int>;

// run() by every thread of so many blocks.
template <class Config, class Run>
void in_blocks(unsigned blocks, const Run& run) {
  map_device::gridDim.x = blocks;
  for (map_device::blockIdx.x = 0; map_device::blockIdx.x < blocks; ++map_device::blockIdx.x) {
    for (map_device::threadIdx.x = 0; map_device::threadIdx.x < Config::Threads;
         ++map_device::threadIdx.x) {
      run();
    }
  }
}

// How often each point of so many lines is computed in groups.
template <class Config, class Share>
void count_groups(const Share& share, Counts& counts, long long points) {
  constexpr long long kWidth = Config::Width;
  const auto lines = static_cast<long long>(counts.size()) / points;
  const long long groups = (points + kWidth - 1) / kWidth;
  map_device::map_groups<Config>(share, {lines * groups, groups, points}, points % kWidth == 0,
                                 [&](long long line, const Group<Config::Width>& group) {
                                   EXPECT_EQ(group.first % kWidth, 0);
                                   auto own = group.load(counts.data(), line * points);
                                   group.each([&](int v, long long point) {
                                     EXPECT_EQ(point, std::min(group.first + v, points - 1));
                                     ++own[v];
                                   });
                                   group.store(counts.data(), line * points, own);
                                 });
}

template <class Config>
void expect_every_point_once() {
  std::mt19937 random(7);
  for (int drawn = 0; drawn < 60; ++drawn) {
    const long long points = 1 + random() % 70, lines = random() % 40;
    const unsigned blocks = 1 + random() % 5;
    SCOPED_TRACE(fmt::format("{} lines of {} points, {} blocks", lines, points, blocks));
    const Counts once(static_cast<size_t>(lines * points), 1);
    Counts by_blocks(once.size()), by_block(once.size()), by_point(once.size());
    in_blocks<Config>(blocks,
                      [&] { count_groups<Config>(map_device::all_blocks(), by_blocks, points); });
    EXPECT_EQ(by_blocks, once);
    in_blocks<Config>(1, [&] {
      count_groups<Config>(MapBlock{static_cast<unsigned>(drawn) % Config::Threads}, by_block,
                           points);
    });
    EXPECT_EQ(by_block, once);
    in_blocks<Config>(blocks, [&] {
      map_device::map_points<Config>(map_device::all_blocks(), lines * points,
                                     [&](long long at) { ++by_point.at(static_cast<size_t>(at)); });
    });
    EXPECT_EQ(by_point, once);
  }
}

TEST(MapTemplate, EveryPointIsComputedOnce) {
  expect_every_point_once<MapConfig<1, 1, 32>>();
  expect_every_point_once<MapConfig<4, 1, 64>>();
  expect_every_point_once<MapConfig<16, 1, 96>>();
  expect_every_point_once<MapConfig<8, 1, 64, true>>();
}

// Threads of a warp have the same points.
TEST(MapTemplate, AWarpComputesAPointTogether) {
  using Config = MapConfig<1, 32, 128>;
  Counts counts(77);
  in_blocks<Config>(3, [&] {
    map_device::map_points<Config>(map_device::all_blocks(), 77, [&](long long at) {
      EXPECT_EQ(at % 4, map_device::threadIdx.x / 32);
      ++counts.at(static_cast<size_t>(at));
    });
  });
  EXPECT_EQ(counts, Counts(77, 32));
}

TEST(MapTemplate, ABlockAloneStartsAtItsFirstThread) {
  using Config = MapConfig<4, 1, 64>;
  in_blocks<Config>(1, [&] {
    const long long item = MapBlock{40}.items<Config>().first;
    EXPECT_EQ((item + 40) % 64, map_device::threadIdx.x);
  });
}

// The blocks of a part are numbered from 0, and there may be parts without blocks.
TEST(MapTemplate, EachBlockHasOnePart) {
  using Config = MapConfig<1, 1, 1>;
  Counts first, second, last;
  const auto note = [](Counts& numbers, long long count) {
    return [&numbers, count](const MapBlocks& blocks) {
      EXPECT_EQ(blocks.count, count);
      numbers.push_back(static_cast<int>(blocks.number));
    };
  };
  const auto none = [](const MapBlocks&) { FAIL() << "a part without blocks"; };
  in_blocks<Config>(9, [&] {
    map_device::map_parts(0, note(first, 2), 2ll, none, 2ll, note(second, 3), 5ll, note(last, 4));
  });
  EXPECT_EQ(first, (Counts{0, 1}));
  EXPECT_EQ(second, (Counts{0, 1, 2}));
  EXPECT_EQ(last, (Counts{0, 1, 2, 3}));
}

// y = x + 1 by groups beside z = 2 x by single points, and the sums of rows by warps.
constexpr const char* kKernels = R"(
extern "C" __global__ void __launch_bounds__(256)
maps(const T* x, T* y, T* z, long long rows, long long columns, long long end, bool vector) {
  map_parts(0, [&](const MapBlocks& blocks) {
    const long long groups = (columns + kWidth - 1) / kWidth;
    map_groups<MapConfig<kWidth, 1, 256>>(blocks, {rows * groups, groups, columns}, vector,
        [&](long long line, const Group<kWidth>& group) {
      auto values = group.load(x, line * columns);
      group.each([&](int v, long long) { values[v] += 1; });
      group.store(y, line * columns, values);
    });
  }, end, [&](const MapBlocks& blocks) {
    map_points<MapConfig<1, 1, 256>>(blocks, rows * columns, [&](long long point) {
      store(z, point, load(x, point) * 2);
    });
  });
}
extern "C" __global__ void __launch_bounds__(256)
sums(const T* x, T* y, long long rows, long long columns) {
  map_points<MapConfig<1, 32, 256>>(all_blocks(), rows, [&](long long row) {
    ValueOf<T> sum = 0;
    for (long long i = threadIdx.x % 32; i < columns; i += 32) sum += load(x, row * columns + i);
    sum = warp_reduce<SumOp>(sum);
    if (threadIdx.x % 32 == 0) store(y, row, sum);
  });
}
extern "C" __global__ void __launch_bounds__(128)
alone(const T* x, T* y, long long count, bool vector) {
  const long long groups = (count + kWidth - 1) / kWidth;
  map_groups<MapConfig<kWidth, 1, 128>>(MapBlock{32}, {groups, groups, count}, vector,
      [&](long long, const Group<kWidth>& group) { group.store(y, 0, group.load(x, 0)); });
}
)";

class MapTemplateOf : public ::testing::TestWithParam<codegen::Target> {};

TEST_P(MapTemplateOf, CompilesWithFunctorsWrittenByHand) {
  if (!Compiler::find()) GTEST_SKIP() << "no libnvrtc: tools/setup.sh installs one";
  constexpr std::string_view kHeaders[] = {"device/maps/map.cuh", "device/types.cuh",
                                           "device/reduce.cuh"};
  for (const auto& [type, width] :
       {std::pair("float", 4), std::pair("half_t", 8), std::pair("bfloat_t", 8),
        std::pair("double", 4), std::pair("long long", 4), std::pair("signed char", 16)}) {
    const std::string text =
        codegen::device_prelude(kHeaders) +
        fmt::format("using T = {};\nconstexpr int kWidth = {};\n", type, width) + kKernels;
    expect_in_registers(text, GetParam().architecture, type);
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, MapTemplateOf, ::testing::ValuesIn(kTargets), target_name);

}  // namespace
}  // namespace redfuser::codegen_tests
