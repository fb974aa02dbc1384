// The merges of attention's partial states by themselves: src/device/attention with functors
// written by hand. state_merge_test.cpp runs them on the host.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "codegen/core/device_text.h"
#include "support/codegen_harness.h"

namespace redfuser::codegen_tests {
namespace {

std::string functors() {
  std::ostringstream text;
  text << std::ifstream(std::filesystem::path(test_paths::functors()) / "attention_rows.cuh")
              .rdbuf();
  return text.str().substr(text.str().find("struct OutputRows"));
}

struct Merge {
  const char *name, *header, *config, *body;
  int threads, columns, architecture;
};

constexpr const char* kSplit = R"(
  __shared__ __align__(16) float shared[Config::kWarps * StateBlock<Config::kRows, Form>::kFloats];
  Form::State own[2];
  float o[Form::kColumns / 8][4];
  own[0] = own[1] = load_state<Form::State>(states + threadIdx.x * 4);
  for (auto& part : o) load_floats(part, states + threadIdx.x * 4);
  finish_split<Config>(form, own, o, shared, states, counter,
                       {blockIdx.y, 16 * blockIdx.z, rows, blockIdx.x / segments, segments});
)";
constexpr const char* kRow = R"(
  merge_row<Config>(form, states, segments, 1 + rows / 64, rows);
)";
constexpr const char* kCluster = R"(
  __shared__ __align__(16) char memory[33 * 1024];
  Form::State own[2];
  float o[Form::kColumns / 16][4];
  own[0] = own[1] = load_state<Form::State>(states + threadIdx.x * 4);
  for (auto& part : o) load_floats(part, states + threadIdx.x * 4);
  const Form::Row lines[2] = {form.row_of(0, threadIdx.x), form.row_of(0, threadIdx.x + 8)};
  const int first = merge_cluster<2>(form, own, o, memory, 32768,
                                     {blockIdx.x & 1, threadIdx.x >> 7, threadIdx.x & 63}, lines);
  for (const auto& part : o) form.write(part, own[0], lines[0], form.finish(own[0], lines[0]), first, true);
  ptx_cluster_wait();
)";

constexpr Merge kMerges[] = {
    {"one_row", "split_merge", "kRows = 1, kThreads = 128, kWarps = 4, kSegments = 4", kSplit, 128,
     128, 80},
    {"any_segments", "split_merge", "kRows = 16, kThreads = 128, kWarps = 4, kSegments = 0", kSplit,
     128, 64, 80},
    {"rounds", "split_merge", "kRows = 8, kThreads = 64, kWarps = 2, kSegments = 22", kSplit, 64,
     80, 80},
    {"row", "row_merge", "kRows = 1, kThreads = 128, kTileRows = 64, kMost = 128", kRow, 128, 512,
     80},
    {"cluster", "cluster_merge", "kRows = 64", kCluster, 256, 128, 90},
};

std::string kernel(const Merge& merge, const std::string& form) {
  const std::string header = fmt::format("device/attention/{}.cuh", merge.header);
  const std::string_view headers[] = {header};
  return codegen::device_prelude(headers) + functors() +
         fmt::format(
             "struct Config {{\n  static constexpr int {};\n}};\nusing Form = {}<{}>;\n"
             "extern \"C\" __global__ void __launch_bounds__({}) merge(float* y, float* states,\n"
             "    unsigned* counter, unsigned segments, long long rows, int columns) {{\n"
             "  const Form form{{{{y, rows, columns}}}};\n{}}}\n",
             merge.config, form, merge.columns, merge.threads, merge.body);
}

class MergeTemplate : public ::testing::TestWithParam<codegen::Target> {};

TEST_P(MergeTemplate, CompilesWithFunctorsWrittenByHand) {
  if (!Compiler::find()) GTEST_SKIP() << "no libnvrtc: tools/setup.sh installs one";
  const int architecture = GetParam().architecture;
  for (const Merge& merge : kMerges) {
    if (architecture < merge.architecture) continue;
    for (const char* form : {"Softmax", "Deviation"}) {
      expect_in_registers(kernel(merge, form), architecture, merge.name);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, MergeTemplate, ::testing::ValuesIn(kTargets), target_name);

}  // namespace
}  // namespace redfuser::codegen_tests
