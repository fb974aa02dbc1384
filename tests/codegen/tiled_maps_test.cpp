// Maps whose operands lie across their results: which ones tiles turn, for which sizes, and that
// the kernels and the template compile everywhere.
#include <gtest/gtest.h>

#include "codegen/core/device_text.h"
#include "codegen/maps/map_select.h"
#include "codegen/maps/tiled_map.h"
#include "codegen/select/generate.h"
#include "support/codegen_harness.h"

namespace redfuser::codegen_tests {
namespace {

constexpr const char* kHead = "<ir_version: 9, opset_import: [\"\" : 20]> ";

// The first map of a graph, for a target.
codegen::GpuStep map_of(const Program& program, const codegen::Target& target) {
  const runtime::CompiledProgram& compiled = *program.handle();
  const ir::Graph graph = clone(compiled.graph());
  for (const fuse::Step& step : compiled.plan.steps) {
    if (!std::holds_alternative<fuse::MapStep>(step.kind)) continue;
    return generate(graph, step, target, codegen::KnownSizes::all(1000), {});
  }
  ADD_FAILURE() << "no map";
  return {};
}

std::set<std::string> families_of(const codegen::GpuStep& step) {
  std::set<std::string> families;
  for (const codegen::GpuCall& call : step.calls) {
    families.insert(std::get<codegen::KernelLaunch>(call).family);
  }
  return families;
}

struct Case {
  const char* name;
  const char* graph;
  std::set<std::string> families;
  const char* refusal;  // of tiles; empty: they take it
};

const Case kCases[] = {
    {"matrix",
     "g (float16[1000,2048] x) => (float16[2048,1000] y) { y = Transpose(x) }",
     {"tiled_map"},
     ""},
    {"odd_sizes",
     "g (float[333,777] x) => (float[777,333] y) { y = Transpose(x) }",
     {"tiled_map"},
     ""},
    {"channels_last",
     "g (bfloat16[8,64,56,56] x, float[64] b) => (float[8,56,56,64] y) {"
     " c = Cast<to = 1>(x) t = Transpose<perm = [0,2,3,1]>(c) a = Add(t, b) y = Relu(a) }",
     {"tiled_map"},
     ""},
    {"bytes",
     "g (uint8[2048,2048] x) => (uint8[2048,2048] y) { y = Transpose(x) }",
     {"tiled_map"},
     ""},
    {"numbers_of_64_bits",
     "g (int64[2000,2048] x) => (int64[2048,2000] y) { t = Transpose(x) y = Neg(t) }",
     {"tiled_map"},
     ""},
    {"beside_rows",
     "g (float16[512,700] x, float16[700,512] r) => (float16[700,512] y) {"
     " t = Transpose(x) y = Mul(t, r) }",
     {"tiled_map"},
     ""},
    {"open_sizes",
     "g (float16[m,n] x) => (float16[n,m] y) { y = Transpose(x) }",
     {"map", "tiled_map"},
     ""},
    // Few points along or across: tiles join axes.
    {"short_lines_across",
     "g (float16[2335,3,384,6] x) => (float16[384,3,6,2335] y) {"
     " y = Transpose<perm = [2,1,3,0]>(x) }",
     {"tiled_map"},
     ""},
    {"short_results",
     "g (float16[64,6,17,3,300] x, float16[17,6] b) => (float16[300,3,64,17,6] y) {"
     " t = Transpose<perm = [4,3,0,2,1]>(x) y = Mul(t, b) }",
     {"tiled_map"},
     ""},
    {"few_channels",
     "g (float16[8,3,224,224] x) => (float16[8,224,224,3] y) {"
     " y = Transpose<perm = [0,2,3,1]>(x) }",
     {"box_map"},
     ""},
    {"few_elements", "g (float[8,8] x) => (float[8,8] y) { y = Transpose(x) }", {"map"}, ""},
    {"rows_stay_rows",
     "g (float16[8,512,12,64] x) => (float16[8,12,512,64] y) {"
     " y = Transpose<perm = [0,2,1,3]>(x) }",
     {"map"},
     "no operand lies along another axis than the results"},
    {"one_line",
     "g (float[4096] x) => (float[4096] y) { y = Exp(x) }",
     {"map"},
     "its points are one line"},
    {"many_operands",
     "g (float[512,512] a, float[512,512] b, float[512,512] c, double[512,512] d,"
     " double[512,512] e) => (float16[512,512] y) {"
     " t = Transpose(a) u = Transpose(b) v = Transpose(c) w = Transpose(d) z = Transpose(e)"
     " s = Add(w, z) r = Cast<to = 1>(s) f = Sum(t, u, v, r) y = Cast<to = 10>(f) }",
     {"box_map"},
     "its tiles exceed shared memory"},
};

class CodegenTiledMaps : public ::testing::TestWithParam<Case> {};

TEST_P(CodegenTiledMaps, AreChosenWhereOperandsLieAcross) {
  const Program program = compile(Model::parse(std::string(kHead) + GetParam().graph));
  for (const codegen::Target& target : kTargets) {
    const codegen::GpuStep step = map_of(program, target);
    EXPECT_EQ(families_of(step), GetParam().families);
    const auto tiles = std::find_if(
        step.offers.begin(), step.offers.end(),
        [](const codegen::Offer& offer) { return offer.family == codegen::kTiledMapFamily; });
    ASSERT_NE(tiles, step.offers.end());
    EXPECT_EQ(tiles->refusal, GetParam().refusal);
    if (!Compiler::find()) continue;
    for (const codegen::GpuCall& call : step.calls) {
      const auto& launch = std::get<codegen::KernelLaunch>(call);
      expect_in_registers(launch.source, target.architecture, GetParam().name);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Graphs, CodegenTiledMaps, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

TEST(CodegenTiledMap, EverySizeHasOneKernel) {
  const Program program = compile(Model::parse(
      std::string(kHead) + "g (float16[m,n] x) => (float16[n,m] y) { y = Transpose(x) }"));
  const codegen::GpuStep step = map_of(program, kTargets[1]);
  for (const int64_t m : {1, 7, 64, 1000, 5000}) {
    for (const int64_t n : {1, 3, 64, 4096}) {
      const std::vector<int64_t> sizes = {m, n};
      int kernels = 0;
      for (const codegen::GpuCall& call : step.calls) {
        kernels += evaluate_size(std::get<codegen::KernelLaunch>(call).grid[0], sizes) > 0 ? 1 : 0;
      }
      EXPECT_EQ(kernels, 1) << m << " x " << n;
    }
  }
}

TEST(CodegenTiledMap, AFailingKernelLeavesTheOther) {
  const Program program = compile(Model::parse(std::string(kHead) + kCases[0].graph));
  const runtime::CompiledProgram& compiled = *program.handle();
  const ir::Graph graph = clone(compiled.graph());
  for (const char* failing : {codegen::kMapFamily, codegen::kTiledMapFamily}) {
    codegen::LeftOut left_out;
    left_out.families[failing] = "fails";
    const codegen::GpuStep step =
        generate(graph, compiled.plan.steps.front(), kTargets[1], codegen::KnownSizes(), left_out);
    EXPECT_EQ(families_of(step).count(failing), 0u);
    EXPECT_EQ(step.calls.size(), 1u);
  }
}

// The text with the number of points for N.
std::string replaced(std::string text, int width) {
  for (size_t at = 0; (at = text.find('N', at)) != std::string::npos;) {
    text.replace(at, 1, std::to_string(width));
  }
  return text;
}

// y[j][i] = x[i][j] + 1, by a tile written by hand.
class TiledMapTemplate : public ::testing::TestWithParam<codegen::Target> {};

TEST_P(TiledMapTemplate, CompilesWithFunctorsWrittenByHand) {
  if (!Compiler::find()) GTEST_SKIP() << "no libnvrtc: tools/setup.sh installs one";
  constexpr std::string_view kHeaders[] = {"device/maps/tiled_map.cuh"};
  struct Tile {
    const char *type, *sizes;
    int width;
  };
  for (const auto& [type, sizes, width] : {Tile{"float", "4, 1, 32, 32, 128", 4},
                                           {"half_t", "8, 2, 64, 32, 128", 8},
                                           {"double", "4, 1, 32, 32, 256", 4},
                                           {"unsigned char", "16, 4, 128, 64, 128", 16}}) {
    constexpr const char* kCompute =
        "[&](const Group<N>& group, const TilePoint<Tile>& at) {\n"
        "  const auto elements = tile_elements(group, tile, at);\n"
        "  at.columns([&](int c, long long across) {\n"
        "    auto values = elements.column(c);\n"
        "    group.each([&](int v, long long) { values[v] += 1; });\n"
        "    group.store(y, across * rows, values);\n"
        "  });\n}";
    const std::string text =
        codegen::device_prelude(kHeaders) +
        fmt::format("using T = {};\nusing Tile = MapTile<{}>;\n", type, sizes) +
        fmt::format(
            "extern \"C\" __global__ void __launch_bounds__(Tile::Threads)\n"
            "turn(const T* x, T* y, long long rows, long long columns, bool vector) {{\n"
            "  __shared__ __align__(16) OperandTile<Tile, T> tile;\n"
            "  tiled_map<Tile>(1, rows, columns, vector,\n"
            "      [&](long long, long long row, long long column) {{\n"
            "        fill_tile(tile, x + column,\n"
            "                  [&](int line) {{ return (row + line) * columns; }}, rows - row,\n"
            "                  columns - column, vector);\n      }},\n{}, {});\n}}\n",
            replaced(kCompute, width), replaced(kCompute, 1));
    expect_in_registers(text, GetParam().architecture, type);
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, TiledMapTemplate, ::testing::ValuesIn(kTargets),
                         target_name);

}  // namespace
}  // namespace redfuser::codegen_tests
