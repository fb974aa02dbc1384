// The main loops of attention by wgmma by themselves: src/device/attention with a functor written
// by hand.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "codegen/core/device_text.h"
#include "support/codegen_harness.h"

namespace redfuser::codegen_tests {
namespace {

constexpr int kArchitecture = 90;

std::string functors(const char* file, const char* from) {
  std::ostringstream text;
  text << std::ifstream(std::filesystem::path(test_paths::functors()) / file).rdbuf();
  return text.str().substr(text.str().find(from));
}

// Bytes of a tile in slabs of 64 columns.
int tile_bytes(int lines, int columns) { return (columns + 63) / 64 * lines * 128; }

std::string kernel(std::string_view header, const std::string& config, const std::string& body) {
  const std::string_view headers[] = {header, "device/attention/merge.cuh"};
  return codegen::device_prelude(headers) + functors("attention_rows.cuh", "struct OutputRows") +
         functors("attention_hopper.cuh", "template <typename Config>") + config +
         "using Form = WarpgroupSoftmax<Config>;\n"
         "extern \"C\" __global__ void __launch_bounds__(Config::kThreads, 1) attend(float* y,\n"
         "    const __grid_constant__ TensorMap q, const __grid_constant__ TensorMap k,\n"
         "    const __grid_constant__ TensorMap v, float* states, unsigned* counter,\n"
         "    long long rows, long long keys, int row_tiles, int others) {\n"
         "  const Form form{{{y, rows, Config::kColumns}}};\n" +
         body + "}\n";
}

struct Loop {
  const char *name, *type;
  int groups, keys, stages, queries, depth, columns;
  bool claims;
};

constexpr Loop kLoops[] = {
    {"two_groups", "half_t", 2, 128, 2, 1, 128, 128, true},
    {"three_groups", "bfloat_t", 3, 128, 2, 2, 64, 64, false},
    {"one_group", "half_t", 1, 64, 2, 1, 256, 256, true},
    {"padded", "half_t", 2, 112, 3, 1, 80, 48, false},
};

std::string text(const Loop& loop) {
  const int shared =
      2048 + loop.queries * tile_bytes(loop.groups * 64, loop.depth) +
      loop.stages * (tile_bytes(loop.keys, loop.depth) + tile_bytes(loop.keys, loop.columns));
  return kernel("device/attention/hopper_loop.cuh",
                fmt::format("struct Config {{\n  using T = {};\n"
                            "  static constexpr int kGroups = {}, kThreads = {}, kKeys = {};\n"
                            "  static constexpr int kStages = {}, kQueries = {}, kShared = {};\n"
                            "  static constexpr int kDepth = {}, kColumns = {};\n"
                            "  static constexpr bool kClaims = {};\n}};\n",
                            loop.type, loop.groups, (loop.groups + 1) * 128, loop.keys, loop.stages,
                            loop.queries, shared, loop.depth, loop.columns, loop.claims),
                "  const RowTiles tiles{row_tiles, others, 4, counter};\n"
                "  hopper_attention<Config>(form, {q, k, v}, tiles, rows, keys);\n");
}

struct LargeHead {
  const char* name;
  int keys, key_stages, value_stages, scorers, cluster;
  bool segmented;
  int depth, columns;
};

constexpr LargeHead kLargeHeads[] = {
    {"values_in_the_keys", 64, 2, 0, 1, 1, true, 576, 512},
    {"cluster", 64, 2, 0, 1, 2, false, 576, 512},
    {"both_groups_score", 64, 2, 0, 2, 1, false, 576, 512},
    {"cluster_of_both", 64, 2, 0, 2, 2, false, 576, 512},
    {"values_of_their_own", 32, 1, 1, 2, 1, true, 512, 512},
};

std::string text(const LargeHead& loop) {
  constexpr int kPartSlabs = 3, kScalars = 3;
  const int parts = ((loop.depth + 63) / 64 + kPartSlabs - 1) / kPartSlabs;
  const int rings = parts * (1 + loop.key_stages) + loop.value_stages;
  const int shared = 1024 + tile_bytes(64, loop.depth) +
                     loop.key_stages * tile_bytes(loop.keys, loop.depth) +
                     loop.value_stages * tile_bytes(loop.keys, loop.columns) + 64 * 128 +
                     kScalars * 2 * 64 * 4 + rings * 16;
  return kernel(
      "device/attention/large_head_loop.cuh",
      fmt::format("struct Config {{\n  using T = bfloat_t;\n"
                  "  static constexpr int kThreads = 384, kKeys = {}, kKeyStages = {};\n"
                  "  static constexpr int kValueStages = {}, kValueSlab = 0, kPartSlabs = {};\n"
                  "  static constexpr int kScorers = {}, kCluster = {}, kShared = {};\n"
                  "  static constexpr bool kSegmented = {};\n"
                  "  static constexpr int kDepth = {}, kColumns = {}, kGroupColumns = {};\n}};\n",
                  loop.keys, loop.key_stages, loop.value_stages, kPartSlabs, loop.scorers,
                  loop.cluster, shared, loop.segmented, loop.depth, loop.columns, loop.columns / 2),
      "  large_head_attention<Config>(form, {q, k, v}, {others, row_tiles, states}, rows, "
      "keys);\n");
}

template <typename Case>
void expect_all(const Case& loop) {
  expect_in_registers(text(loop), kArchitecture, loop.name);
}

TEST(AttentionHopperTemplate, ManyRowsCompileWithAFunctorWrittenByHand) {
  if (!Compiler::find()) GTEST_SKIP() << "no libnvrtc: tools/setup.sh installs one";
  for (const Loop& loop : kLoops) expect_all(loop);
}

TEST(AttentionHopperTemplate, LargeHeadsCompileWithAFunctorWrittenByHand) {
  if (!Compiler::find()) GTEST_SKIP() << "no libnvrtc: tools/setup.sh installs one";
  for (const LargeHead& loop : kLargeHeads) expect_all(loop);
}

}  // namespace
}  // namespace redfuser::codegen_tests
