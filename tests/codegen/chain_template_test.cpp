// Chained products by themselves: src/device/product/chain.cuh with maps written by hand.
#include "codegen/core/device_text.h"
#include "support/codegen_harness.h"

namespace redfuser::codegen_tests {
namespace {

constexpr std::string_view kHeaders[] = {"device/product/chain.cuh", "device/reduce.cuh"};

struct Chain {
  const char* name;
  std::string type;
  int rows, depth, inner, width, products, chunks, blocks, clusters, stages;
  const char* element;  // of the mapped columns
};

const Chain kChains[] = {
    {"one_block", "half_t", 8, 8, 64, 8, 1, 1, 1, 1, 4, "sums[0][v]"},
    {"cluster", "half_t", 16, 768, 1024, 1032, 1, 1, 16, 1, 12, "fmaxf(sums[0][v], 0.0f)"},
    {"gated", "bfloat_t", 16, 1024, 3072, 1024, 2, 1, 8, 3, 8,
     "sums[0][v] / (1.0f + expf(-sums[0][v])) * sums[1][v]"},
};

std::string kernel(const Chain& chain) {
  const bool two = chain.products == 2;
  return codegen::device_prelude(kHeaders) +
         fmt::format(
             "struct Config {{\n  using T = {};\n  static constexpr int kRows = {}, kDepth = {}, "
             "kInner = {}, kWidth = {}, kProducts = {}, kChunks = {}, kBlocks = {}, kClusters = "
             "{}, kGroups = 4, kStages = {};\n"
             "  static constexpr bool kFirstByRows = {}, kSecondByRows = false;\n}};\n",
             chain.type, chain.rows, chain.depth, chain.inner, chain.width, chain.products,
             chain.chunks, chain.blocks, chain.clusters, chain.stages, two) +
         fmt::format(
             "using Tile = ChainTile<Config>;\n"
             "extern \"C\" __global__ void __launch_bounds__(Tile::kThreads + 32, 1) chain(\n"
             "    const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,\n"
             "    const __grid_constant__ TensorMap c, const __grid_constant__ TensorMap d,\n"
             "    Tile::T* y, int rows, float* partials, unsigned* counters) {{\n"
             "  multiply_chain<Tile, true>(rows, ChainExchange{{partials, counters}},\n"
             "      [&](long long row, long long first, const float (&sums)[{}][4],\n"
             "          float (&values)[4]) {{\n"
             "    for (int v = 0; v < 4; ++v) values[v] = {};\n  }},\n"
             "      [&](long long row, long long first, const float (&sums)[1][4]) {{\n"
             "    store_group<4>(y, row * Tile::kWidth + first, sums[0], Tile::kWidth - first,\n"
             "                   Tile::kWidth % 4 == 0);\n  }}, a, d, b{});\n}}\n",
             chain.products, chain.element, two ? ", c" : "");
}

// The products are Hopper's.
TEST(ChainTemplate, CompilesWithMapsWrittenByHand) {
  if (!Compiler::find()) GTEST_SKIP() << "no libnvrtc: tools/setup.sh installs one";
  for (const Chain& chain : kChains) expect_in_registers(kernel(chain), 90, chain.name);
}

}  // namespace
}  // namespace redfuser::codegen_tests
