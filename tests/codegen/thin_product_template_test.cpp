// Products with few lines by themselves: src/device/product/thin_product.cuh with epilogues written
// by hand.
#include "codegen/core/device_text.h"
#include "support/codegen_harness.h"

namespace redfuser::codegen_tests {
namespace {

constexpr std::string_view kHeaders[] = {"device/product/thin_product.cuh"};

// The arguments of a ThinTile behind its type, and its wide matrices.
struct Tile {
  const char *name, *type, *arguments;
  int products, blocks;
  bool coded = false;
};

constexpr Tile kTiles[] = {
    {"tensor_along", "half_t", "true, true, 8, 16, 4, 1, 1", 1, 1},
    {"tensor_across", "half_t", "false, true, 16, 64, 4, 1, 1", 1, 1},
    {"two_products", "bfloat_t", "true, true, 8, 16, 8, 1, 2", 2, 1},
    {"scalar", "float", "true, true, 4, 32, 4, 1, 1", 1, 1},
    {"cluster", "half_t", "true, true, 8, 16, 4, 4, 1", 1, 4},
    {"thin_elements", "float", "false, false, 2, 32, 8, 1, 1", 1, 1},
    {"coded", "half_t", "true, true, 8, 16, 8, 1, 1, ThinCode<4, 32, false>", 1, 1, true},
    {"coded_short", "half_t", "true, true, 8, 16, 4, 1, 1, ThinCode<4, 16, true>", 1, 1, true},
    {"coded_two", "half_t", "true, true, 16, 16, 8, 1, 2, ThinCode<4, 128, true>", 2, 1, true},
    {"coded_bytes", "half_t", "true, true, 8, 16, 8, 4, 1, ThinCode<8, 4096, false>", 1, 4, true},
    {"coded_bfloat", "bfloat_t", "true, true, 8, 32, 8, 1, 1, ThinCode<4, 32, true>", 1, 1, true},
    {"coded_scalar", "float", "true, true, 4, 32, 8, 1, 1, ThinCode<4, 32, true>", 1, 1, true},
    {"coded_scalar_bytes", "float", "true, true, 8, 32, 8, 1, 1, ThinCode<8, 64, false>", 1, 1,
     true},
};

// A sum as it is, and a gate: the first product's sigmoid times the last one.
constexpr const char* kEpilogues[] = {
    "y[line * wide + at] = sums[0];",
    "y[line * wide + at] = sums[sizeof(sums) / 4 - 1] / (1 + expf(-sums[0]));",
};

std::string kernel(const Tile& tile, const char* epilogue) {
  const char* const matrix = tile.coded ? "ThinCodedMatrix<Tile::Type>" : "ThinMatrix<Tile::Type>";
  const char* const value =
      tile.coded ? "{reinterpret_cast<const uint4*>(a), a, "
                   "reinterpret_cast<const unsigned char*>(a), 8, depth / Tile::Step, depth}"
                 : "{a, Tile::Along ? depth : 1, Tile::Along ? 1 : wide}";
  return codegen::device_prelude(kHeaders) +
         fmt::format(
             "using Tile = ThinTile<{}, {}>;\n"
             "extern \"C\" __global__ void __launch_bounds__(Tile::Threads, 1) product(\n"
             "    const Tile::Type* a, const Tile::Type* b, float* y, int wide, int lines,\n"
             "    int depth, bool vector) {{\n"
             "  __shared__ ThinSlots<Tile> slots;\n"
             "  const {} of_a = {};\n"
             "  const ThinMatrix<Tile::Type> thin = {{b, depth, 1}};\n"
             "  const {} matrices[] = {{{}}};\n"
             "  ThinProduct<Tile> product(slots, matrices, thin, wide, lines, depth);\n"
             "  product.multiply(vector);\n"
             "  product.finish([&](long long at, long long line, const float(&sums)[{}]) {{\n"
             "    {}\n  }});\n}}\n",
             tile.type, tile.arguments, matrix, value, matrix,
             tile.products == 2 ? "of_a, of_a" : "of_a", tile.products, epilogue);
}

class ThinProductTemplate : public ::testing::TestWithParam<codegen::Target> {};

TEST_P(ThinProductTemplate, CompilesWithEpiloguesWrittenByHand) {
  if (!Compiler::find()) GTEST_SKIP() << "no libnvrtc: tools/setup.sh installs one";
  const int architecture = GetParam().architecture;
  for (const Tile& tile : kTiles) {
    if (tile.blocks > 1 && architecture < 90) continue;
    for (const char* epilogue : kEpilogues) {
      expect_in_registers(kernel(tile, epilogue), architecture, tile.name);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, ThinProductTemplate, ::testing::ValuesIn(kTargets),
                         target_name);

}  // namespace
}  // namespace redfuser::codegen_tests
