// Products within a cluster by themselves: src/device/product/cluster_product.cuh with what follows
// written by hand.
#include "codegen/core/device_text.h"
#include "support/codegen_harness.h"

namespace redfuser::codegen_tests {
namespace {

constexpr std::string_view kHeaders[] = {"device/product/cluster_product.cuh",
                                         "device/product/ptx_part_product.cuh",
                                         "device/reduce.cuh"};

// The arguments of a ClusterTile; blocks of a multiprocessor, products, and one element of eight.
struct Product {
  const char *name, *tile;
  int resident, products;
  const char* element;
};

constexpr Product kProducts[] = {
    {"one_block", "half_t, 64, 24, 64, 1, 1, 2, true", 2, 1, "sums[0][v]"},
    {"cluster", "half_t, 128, 128, 256, 1, 8, 1, false", 1, 1, "fmaxf(sums[0][v], 0.0f)"},
    {"gated", "bfloat_t, 128, 128, 64, 2, 4, 2, false", 2, 2,
     "sums[0][v] / (1.0f + expf(-sums[0][v])) * sums[1][v]"},
    {"floats", "float, 128, 128, 128, 1, 1, 1, true", 1, 1, "sums[0][v]"},
    {"floats_by_terms", "float, 64, 40, 128, 1, 4, 1, false", 1, 1, "sums[0][v]"},
    {"floats_across", "float, 128, 104, 128, 1, 2, 1, true, true", 1, 1, "sums[0][v]"},
    {"small_floats", "float, 64, 64, 64, 1, 1, 2, false", 2, 1, "sums[0][v]"},
    {"gated_floats", "float, 128, 128, 64, 2, 2, 1, false", 1, 2, "sums[0][v] * sums[1][v]"},
};

std::string kernel(const Product& product) {
  const bool two = product.products == 2;
  return codegen::device_prelude(kHeaders) +
         fmt::format(
             "using Tile = ClusterTile<{}>;\n"
             "extern \"C\" __global__ void __launch_bounds__(Tile::kBlockThreads, {}) product(\n"
             "    const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,\n"
             "    const __grid_constant__ TensorMap c, Tile::T* y, ClusterSizes sizes) {{\n"
             "  multiply_cluster<Tile, true>(sizes, true, false,\n"
             "      [&](long long row, long long first, const float (&sums)[{}][Tile::kWidth]) {{\n"
             "    float values[Tile::kWidth];\n"
             "    for (int v = 0; v < Tile::kWidth; ++v) values[v] = {};\n"
             "    store_group<Tile::kWidth>(y, row * sizes.columns + first, values,\n"
             "                              sizes.columns - first,\n"
             "                              sizes.columns % Tile::kWidth == 0);\n  }}, a, "
             "b{});\n}}\n",
             product.tile, product.resident, product.products, product.element, two ? ", c" : "");
}

// The products are Hopper's.
TEST(ClusterProductTemplate, CompilesWithAFinishWrittenByHand) {
  if (!Compiler::find()) GTEST_SKIP() << "no libnvrtc: tools/setup.sh installs one";
  for (const Product& product : kProducts) expect_in_registers(kernel(product), 90, product.name);
}

}  // namespace
}  // namespace redfuser::codegen_tests
