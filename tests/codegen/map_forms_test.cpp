// Maps by boxes of several axes: which maps take them, and that their kernels and the
// template of boxes compile everywhere.
#include <gtest/gtest.h>

#include "codegen/core/device_text.h"
#include "codegen/select/generate.h"
#include "support/codegen_harness.h"

namespace redfuser::codegen_tests {
namespace {

struct Case {
  const char* name;
  const char* graph;
  const char* family;
};

const Case kCases[] = {
    // Lines of two axes are short along the results and along the operand.
    {"short_axes",
     "g (float16[1640, 24, 47, 2, 2] x) => (float16[1640, 2, 24, 2, 47] y) {"
     " y = Transpose<perm = [0, 3, 1, 4, 2]>(x) }",
     "box_map"},
    {"short_axes_and_row",
     "g (float[37, 3, 5, 11, 13, 9] x, float[5] r) => (float[9, 11, 3, 13, 37, 5] y) {"
     " t = Transpose<perm = [5, 3, 1, 4, 0, 2]>(x) y = Add(t, r) }",
     "box_map"},
    {"open_batch",
     "g (float16[b, 24, 47, 2, 2] x) => (float16[b, 2, 24, 2, 47] y) {"
     " y = Transpose<perm = [0, 3, 1, 4, 2]>(x) }",
     "box_map"},
    // Patches of images: an axis of the results is two digits of the operand's.
    {"patches",
     "g (float[32, 3, 224, 224] x) => (float[32, 784, 192] y)<int64[6] s = {32, 3, 28, 8, 28, 8},"
     " int64[3] t = {32, 784, 192}> {"
     " a = Reshape(x, s) b = Transpose<perm = [0, 2, 4, 3, 5, 1]>(a) y = Reshape(b, t) }",
     "box_map"},
    {"along", "g (float[64, 64, 512] x) => (float[64, 64, 512] y) { y = Exp(x) }", "map"},
};

class CodegenMapForms : public ::testing::TestWithParam<Case> {};

TEST_P(CodegenMapForms, AreChosenByTime) {
  const std::string head = "<ir_version: 9, opset_import: [\"\" : 20]> ";
  const Program program = compile(Model::parse(head + GetParam().graph));
  const runtime::CompiledProgram& compiled = *program.handle();
  const ir::Graph graph = clone(compiled.graph());
  for (const codegen::Target& target : kTargets) {
    std::set<std::string> families;
    for (const fuse::Step& step : compiled.plan.steps) {
      const auto made = generate(graph, step, target, codegen::KnownSizes::all(1640), {});
      for (const codegen::GpuCall& call : made.calls) {
        const auto& launch = std::get<codegen::KernelLaunch>(call);
        families.insert(launch.family);
        if (Compiler::find()) {
          expect_in_registers(launch.source, target.architecture, GetParam().name);
        }
      }
    }
    EXPECT_TRUE(families.contains(GetParam().family)) << GetParam().name;
  }
}

INSTANTIATE_TEST_SUITE_P(Graphs, CodegenMapForms, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

// y[c][b][a] = x[a][b][c] + 1 for a < 3 and b < 5, by a box written by hand, whose c may end in it.
class BoxMapTemplate : public ::testing::TestWithParam<codegen::Target> {};

TEST_P(BoxMapTemplate, CompilesWithFunctorsWrittenByHand) {
  if (!Compiler::find()) GTEST_SKIP() << "no libnvrtc: tools/setup.sh installs one";
  constexpr std::string_view kHeaders[] = {"device/maps/box_map.cuh"};
  constexpr const char* kKernel = R"(
extern "C" __global__ void __launch_bounds__(Box::Threads)
turn(const T* x, T* y, long long points, bool vector) {
  __shared__ __align__(16) OperandBox<Box, T> operand;
  box_map((points + 31) / 32,
      [&](long long box) {
        fill_box<Box, 1, Box::Pitch>(operand, x, true, [&](int element) {
          const int c = element % 32, b = element / 32 % 5, a = element / 160;
          return BoxUnit{(a * 5 + b) * points + box * 32 + c, c * Box::Pitch + b * 3 + a,
                         box * 32 + c < points};
        });
      },
      [&](long long box) {
        compute_box<Box>(Box::Along, vector, [&](int row, const Group<Box::Width>& group) {
          if (box * 32 + row >= points) return;
          auto values = operand.group(row, group.first);
          group.each([&](int v, long long) { values[v] += 1; });
          group.store(y, (box * 32 + row) * 15, values);
        });
      });
}
)";
  for (const auto& [type, box] :
       {std::pair("float", "1, 32, 15, 15, 128"), std::pair("half_t", "1, 32, 15, 18, 256"),
        std::pair("double", "1, 32, 15, 16, 64")}) {
    const std::string text = codegen::device_prelude(kHeaders) +
                             fmt::format("using T = {};\nusing Box = MapBox<{}>;\n", type, box) +
                             kKernel;
    expect_in_registers(text, GetParam().architecture, type);
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, BoxMapTemplate, ::testing::ValuesIn(kTargets), target_name);

}  // namespace
}  // namespace redfuser::codegen_tests
