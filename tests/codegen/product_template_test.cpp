// The tiles of products by themselves: src/device/product/product_loop.cuh with epilogues written
// by hand.
#include "codegen/core/device_text.h"
#include "support/codegen_harness.h"

namespace redfuser::codegen_tests {
namespace {

constexpr std::string_view kHeaders[] = {"device/product/product_loop.cuh", "device/reduce.cuh"};

// The arguments of a ProductTile; its products and width, and one element of a group.
struct Product {
  const char *name, *tile;
  int products, width;
  const char* element;
};

constexpr Product kProducts[] = {
    {"half", "half_t, half_t, 1, 8, false, true, true", 1, 8, "sums[0][v] + bias[v]"},
    {"by_rows", "bfloat_t, bfloat_t, 1, 8, true, false, false", 1, 8, "fmaxf(sums[0][v], bias[v])"},
    {"float_sums", "half_t, float, 1, 8, false, true, true", 1, 8, "expf(sums[0][v]) + bias[v]"},
    {"single_columns", "half_t, half_t, 1, 1, false, false, false", 1, 1, "sums[0][v] * 2.0f"},
    {"single_float_columns", "half_t, float, 1, 1, true, false, true", 1, 1, "sums[0][v] * 2.0f"},
    {"gated", "half_t, half_t, 2, 4, false, true, false", 2, 4,
     "sums[0][v] / (1.0f + expf(-sums[0][v])) * sums[1][v]"},
    {"four", "bfloat_t, bfloat_t, 4, 2, true, true, true", 4, 2,
     "sums[0][v] + sums[1][v] * sums[2][v] + sums[3][v]"},
};

std::string kernel(const Product& product) {
  std::string parameters, maps = "a";
  for (int i = 0; i < product.products; ++i) {
    parameters += fmt::format("const __grid_constant__ TensorMap b{}, ", i);
    maps += fmt::format(", b{}", i);
  }
  return codegen::device_prelude(kHeaders) +
         fmt::format(
             "using Tile = ProductTile<{0}>;\n"
             "extern \"C\" __global__ void __launch_bounds__(kProductThreads, 1) product(\n"
             "    const __grid_constant__ TensorMap a, {1}const float* c, Tile::Staged* y,\n"
             "    ProductSizes sizes) {{\n"
             "  extern __shared__ char memory[];\n"
             "  ProductTiles<Tile> product(memory, sizes);\n"
             "  if (product.load(MatrixOperands{{true, false}}, {2})) return;\n"
             "  Values<float, {3}> bias = {{}};\n"
             "  product.multiply(sizes.columns % 8 == 0 && aligned(y),\n"
             "      [&](int, const Group<{3}>& group) {{ bias = group.load(c, 0); }},\n"
             "      [&](int batch, const ProductLines<Tile>& lines) {{\n"
             "    const long long top = batch * sizes.rows;\n"
             "    lines.each_group([&](long long row, const Group<{3}>& group,\n"
             "                         const float (&sums)[{4}][{3}]) {{\n"
             "      auto values = group.values(y);\n"
             "      group.each([&](int v, long long) {{ values[v] = {5}; }});\n"
             "      group.store(y, (top + row) * sizes.columns, values);\n"
             "    }});\n  }});\n}}\n",
             product.tile, parameters, maps, product.width, product.products, product.element);
}

// The products are Hopper's.
TEST(ProductTemplate, CompilesWithAnEpilogueWrittenByHand) {
  if (!Compiler::find()) GTEST_SKIP() << "no libnvrtc: tools/setup.sh installs one";
  for (const Product& product : kProducts) expect_in_registers(kernel(product), 90, product.name);
}

}  // namespace
}  // namespace redfuser::codegen_tests
