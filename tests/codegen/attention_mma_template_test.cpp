// The main loops of attention by mma.sync by themselves: src/device/attention with functors written
// by hand.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "codegen/core/device_text.h"
#include "support/codegen_harness.h"

namespace redfuser::codegen_tests {
namespace {

std::string functors(const char* file, const char* from) {
  std::ostringstream text;
  text << std::ifstream(std::filesystem::path(test_paths::functors()) / file).rdbuf();
  return text.str().substr(text.str().find(from));
}

struct Loop {
  const char *name, *scores, *values;  // how they are computed
  const char *query, *key, *value;     // their types
  int warps, stages, depth, columns, keys;
};

constexpr Loop kLoops[] = {
    {"halves", "Native", "Native", "half_t", "half_t", "half_t", 4, 2, 128, 128, 64},
    {"bfloats_in_one_tile", "Native", "Native", "bfloat_t", "bfloat_t", "bfloat_t", 2, 1, 64, 40,
     16},
    {"floats", "Parts", "Parts", "float", "float", "float", 4, 2, 64, 64, 32},
    {"floats_exactly", "Scalar", "Scalar", "float", "float", "float", 4, 2, 64, 64, 64},
    {"weights_in_parts", "Native", "Parts", "half_t", "half_t", "half_t", 4, 2, 64, 64, 32},
    {"mixed", "Parts", "Native", "float", "half_t", "bfloat_t", 4, 2, 32, 64, 32},
};

// Bytes of a tile's lines, with padding as MmaTiles has it.
int line(const char* type, int columns, bool parts) {
  const int element = std::string(type) == "float" ? 4 : 2;
  return (columns + 15) / 16 * 16 * element + (parts && element == 4 ? 32 : 16);
}

struct Bytes {
  int query, keys, values, staged;
  explicit Bytes(const Loop& loop)
      : query(line(loop.query, loop.depth, loop.scores == std::string("Parts"))),
        keys(loop.keys * line(loop.key, loop.depth, loop.scores == std::string("Parts"))),
        values(loop.keys * line(loop.value, loop.columns, false)),
        staged(loop.values == std::string("Scalar") ? 16 * (loop.keys * 4 + 16) : 0) {}
};

std::string head(const Loop& loop, std::string_view header, int shared, int rows,
                 const std::string& form) {
  const std::string_view headers[] = {header, "device/attention/merge.cuh"};
  return codegen::device_prelude(headers) + functors("attention_rows.cuh", "struct OutputRows") +
         functors("attention_mma.cuh", "template <typename Config, typename Merge>") +
         fmt::format(
             "struct Config {{\n"
             "  static constexpr int kWarps = {}, kThreads = {}, kStages = {}, kShared = {};\n"
             "  static constexpr int kDepth = {}, kColumns = {}, kKeys = {};\n"
             "  static constexpr int kRows = {}, kHalves = {}, kSegments = 4;\n"
             "  static constexpr Products kScores = Products::{}, kValues = Products::{};\n}};\n"
             "using Form = {}<Config>;\n",
             loop.warps, loop.warps * 32, loop.stages, shared, loop.depth, loop.columns, loop.keys,
             rows, rows > 8 ? 2 : 1, loop.scores, loop.values, form);
}

std::string flash(const Loop& loop, const std::string& form) {
  const Bytes bytes(loop);
  const int shared =
      loop.warps * (16 * bytes.query + bytes.staged) + loop.stages * (bytes.keys + bytes.values);
  return head(loop, "device/attention/mma.cuh", shared, 16, form) +
         fmt::format(
             "extern \"C\" __global__ void __launch_bounds__(Config::kThreads) attend(float* y,\n"
             "    const {}* q, const {}* k, const {}* v, long long rows, long long keys,\n"
             "    long long tiles, bool vector) {{\n"
             "  const Form form{{{{{{{{y, rows, Config::kColumns}}}}, keys}}}};\n"
             "  flash_mma<Config>(form, operand(q, vector), operand(k, vector),\n"
             "                    operand(v, false), rows, keys, tiles);\n}}\n",
             loop.query, loop.key, loop.value);
}

std::string split(const Loop& loop, const std::string& form, int rows, bool boxes) {
  const Bytes bytes(loop);
  const int slabs = (loop.depth + 63) / 64 + (loop.columns + 63) / 64;
  const int rings =
      boxes ? loop.warps * loop.stages * (loop.keys * 128 * slabs + 8) + 1024
            : 16 * bytes.query +
                  loop.warps * (loop.stages * (bytes.keys + bytes.values) + bytes.staged);
  const std::string tensors =
      boxes ? "const __grid_constant__ TensorMap k, const __grid_constant__ TensorMap v"
            : fmt::format("const {}* k, const {}* v", loop.key, loop.value);
  return head(loop, boxes ? "device/attention/split_boxes.cuh" : "device/attention/split_kv.cuh",
              rings, rows, form) +
         fmt::format(
             "extern \"C\" __global__ void __launch_bounds__(Config::kThreads) attend(float* y,\n"
             "    const {}* q, {}, float* states, unsigned* counter, long long rows,\n"
             "    long long keys, unsigned segments, unsigned tiles, bool vector) {{\n"
             "  const Form form{{{{{{{{y, rows, Config::kColumns}}}}, keys}}}};\n"
             "  split_kv<Config>(form, operand(q, vector), {}, rows, keys,\n"
             "                   SplitStates{{states, counter, segments, tiles}});\n}}\n",
             loop.query, tensors,
             boxes ? fmt::format("boxes<{}>(k), boxes<{}>(v)", loop.key, loop.value)
                   : "operand(k, vector), operand(v, vector)");
}

class AttentionMmaTemplate : public ::testing::TestWithParam<codegen::Target> {};

TEST_P(AttentionMmaTemplate, CompilesWithFunctorsWrittenByHand) {
  if (!Compiler::find()) GTEST_SKIP() << "no libnvrtc: tools/setup.sh installs one";
  const int architecture = GetParam().architecture;
  for (const Loop& loop : kLoops) {
    for (const char* form : {"SoftmaxRows", "SumRows"}) {
      expect_in_registers(flash(loop, form), architecture, loop.name);
      Loop few = loop;
      few.stages = 3;
      few.keys = 16;
      expect_in_registers(split(few, form, 4, false), architecture, loop.name);
      const bool native = std::string(loop.scores) + loop.values == "NativeNative";
      if (architecture != 90 || !native) continue;
      expect_in_registers(split(few, form, 16, true), architecture, loop.name);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, AttentionMmaTemplate, ::testing::ValuesIn(kTargets),
                         target_name);

}  // namespace
}  // namespace redfuser::codegen_tests
