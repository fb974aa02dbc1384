// Convolutions by themselves: the templates of src/device/convolution with epilogues written by
// hand.
#include "codegen/core/device_text.h"
#include "support/codegen_harness.h"

namespace redfuser::codegen_tests {
namespace {

struct Tile {
  const char *name, *arguments;
  int blocks, resident;
};

constexpr Tile kTiles[] = {
    {"small", "half_t, 64, 32, 2, 1, 64, 4, 1, 2, 1", 1, 3},
    {"square", "bfloat_t, 64, 64, 2, 2, 64, 4, 1, 2, 1", 1, 3},
    {"cluster", "half_t, 64, 64, 2, 2, 64, 4, 4, 2, 1", 4, 3},
    {"deep", "half_t, 128, 32, 4, 1, 32, 4, 1, 2, 1", 1, 3},
    {"volume", "half_t, 128, 32, 4, 1, 32, 4, 1, 3, 1", 1, 3},
    {"floats", "float, 64, 64, 2, 2, 32, 4, 1, 2, 2", 1, 3},
    {"rounded", "float, 64, 64, 2, 2, 32, 4, 1, 2, 1", 1, 3},
    {"volume_of_floats", "float, 128, 128, 2, 4, 32, 3, 1, 3, 2", 1, 1},
    {"cluster_of_floats", "float, 64, 128, 2, 2, 32, 3, 4, 2, 2", 4, 2},
};

std::string tensor_kernel(const Tile& tile, bool by_positions) {
  constexpr std::string_view kHeaders[] = {"device/convolution/convolution.cuh"};
  const char* finish =
      by_positions
          ? "convolution.finish_positions([&](long long position, long long filter, float "
            "sum) {\n    y[filter * sizes.positions() + position] = sum;\n  });\n"
          : "convolution.finish(true, [&](long long position, const Group<8>& group, float "
            "(&sums)[8]) {\n    for (int i = 0; i < 8; ++i) {\n"
            "      y[position * sizes.filters + group.first + i] = fmaxf(sums[i], 0);\n"
            "    }\n  });\n";
  return codegen::device_prelude(kHeaders) +
         fmt::format(
             "using Tile = ConvolutionTile<{}>;\n"
             "extern \"C\" __global__ void __launch_bounds__(Tile::Threads, {}) convolution(\n"
             "    const Tile::T* x, const Tile::T* w, float* y, ConvolutionSizes sizes) {{\n"
             "  extern __shared__ __align__(128) char memory[];\n"
             "  Convolution<Tile> convolution(memory, x, w, sizes);\n"
             "  convolution.multiply();\n  {}}}\n",
             tile.arguments, tile.resident, finish);
}

std::string depthwise_kernel(const char* arguments) {
  constexpr std::string_view kHeaders[] = {"device/convolution/depthwise.cuh"};
  return codegen::device_prelude(kHeaders) +
         fmt::format(
             "using Tile = DepthwiseTile<{}>;\n"
             "extern \"C\" __global__ void __launch_bounds__(128, 1) depthwise(\n"
             "    const Tile::T* x, const Tile::T* w, float* y, DepthwiseSizes sizes) {{\n"
             "  Depthwise<Tile> convolution(x, w, sizes);\n"
             "  convolution.run(true, [&](int image, const Group<Tile::Width>& group, int row, int "
             "column,\n"
             "                      float (&sums)[Tile::Width]) {{\n"
             "    const long long place = (static_cast<long long>(image) * sizes.out_height + row) "
             "* sizes.out_width + column;\n"
             "    for (int i = 0; i < Tile::Width; ++i) {{\n"
             "      y[place * sizes.channels + group.first + i] = sums[i];\n    }}\n  }});\n}}\n",
             arguments);
}

class ConvolutionTemplate : public ::testing::TestWithParam<codegen::Target> {};

TEST_P(ConvolutionTemplate, CompilesWithEpiloguesWrittenByHand) {
  if (!Compiler::find()) GTEST_SKIP() << "no libnvrtc: tools/setup.sh installs one";
  const int architecture = GetParam().architecture;
  for (const Tile& tile : kTiles) {
    if (tile.blocks > 1 && architecture < 90) continue;
    for (const bool by_positions : {false, true}) {
      expect_in_registers(tensor_kernel(tile, by_positions), architecture, tile.name);
    }
  }
  for (const char* arguments :
       {"half_t, 8, 1, 4, 3, 3, 1, 1, 1, 1", "bfloat_t, 2, 4, 7, 7, 7, 1, 1, 1, 1",
        "half_t, 1, 2, 4, 5, 3, 2, 3, 1, 2", "float, 4, 2, 4, 7, 7, 1, 1, 1, 1",
        "half_t, 8, 8, 1, 31, 1, 1, 1, 1, 1", "float, 4, 8, 1, 9, 1, 2, 1, 3, 1"}) {
    expect_in_registers(depthwise_kernel(arguments), architecture, arguments);
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, ConvolutionTemplate, ::testing::ValuesIn(kTargets),
                         target_name);

}  // namespace
}  // namespace redfuser::codegen_tests
