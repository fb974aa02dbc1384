// Maps that the attention which reads them computes: which steps are joined, that the kernel has
// the places that a block reads, and that it compiles on every architecture.
#include "codegen/attention/mma/block_maps.h"

#include "codegen/joined/joined_steps.h"
#include "support/codegen_harness.h"
#include "support/rotary_attention.h"

namespace redfuser::codegen_tests {
namespace {

using test_support::RotaryAttention;

struct Case {
  const char* name;
  RotaryAttention graph;
  int maps;  // that the kernel computes
};

std::vector<Case> cases() {
  return {
      {"one_token", {8, 2, 64, "1"}, 3},
      {"open_tokens", {8, 2, 64, "s"}, 3},
      {"own_keys", {6, 6, 96, "2"}, 3},
      {"one_key_head", {16, 1, 128, "3"}, 3},
      {"float32", {4, 2, 16, "1", "float"}, 3},
      {"a_result_of_the_graph", {8, 2, 64, "1", "float16", "", ", float16[b,8,1,64] qr"}, 3},
      // The softmax that reads the rotated queries writes them.
      {"read_before", {8, 2, 64, "1", "float16", "z = Softmax(qr)", ", float16[b,8,1,64] z"}, 2},
  };
}

struct Found {
  int maps = 0;
  std::vector<codegen::KernelLaunch> launches;
};

Found find(const Model& model, codegen::Target target) {
  const Program program = compile(model);
  const runtime::CompiledProgram& compiled = *program.handle();
  const ir::Graph graph = clone(compiled.graph());
  codegen::place_values(target, compiled.plan, compiled.appends, {});
  const codegen::JoinedSteps steps(graph, compiled.plan, target, {});
  Found result;
  for (size_t i = 0; i < compiled.plan.steps.size(); ++i) {
    if (std::holds_alternative<fuse::AliasStep>(compiled.plan.steps[i].kind)) continue;
    const auto* group = steps.group_of(i);
    if (group == nullptr || group->kind != codegen::JoinedGroup::Kind::BlockMaps) continue;
    const codegen::GpuStep step = steps.generate(graph, compiled.plan, i, target);
    for (const codegen::GpuCall& call : step.calls) {
      const auto* launch = std::get_if<codegen::KernelLaunch>(&call);
      if (launch == nullptr || launch->family != codegen::kBlockMapsFamily) continue;
      result.maps = static_cast<int>(group->steps.size()) - 1;
      result.launches.push_back(*launch);
    }
  }
  return result;
}

class CodegenBlockMaps : public ::testing::TestWithParam<Case> {};

TEST_P(CodegenBlockMaps, AreComputedByTheAttention) {
  const Model model = Model::parse(GetParam().graph.graph());
  for (const codegen::Target& target : kTargets) {
    const Found found = find(model, target);
    EXPECT_EQ(found.maps, GetParam().maps) << target.architecture;
    const Compiler* compiler = Compiler::find();
    for (const codegen::KernelLaunch& launch : found.launches) {
      if (compiler == nullptr) GTEST_SKIP() << "there is no NVRTC";
      const auto result = Compiler::find()->compile(launch.source, target.architecture);
      EXPECT_TRUE(result.compiled) << launch.source << result.log;
      EXPECT_EQ(result.spilled, 0) << launch.source;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, CodegenBlockMaps, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.name); });

// A block has the query heads of its key head, and not all of them.
TEST(CodegenBlockMaps, HaveThePlacesOfABlockAlone) {
  const Found found = find(Model::parse(RotaryAttention{8, 2, 64, "1"}.graph()), kTargets[1]);
  ASSERT_EQ(found.launches.size(), 1u);
  // 4 heads of 32 pairs, 4 pairs a thread.
  EXPECT_NE(found.launches[0].source.find("(MapBlock{0}, {32ll,"), std::string::npos)
      << found.launches[0].source;
}

// A kernel before the attention checks its masks.
TEST(CodegenBlockMaps, AreApartWhereMasksAreExact) {
  codegen::Target target = kTargets[1];
  target.exact_masks = true;
  EXPECT_EQ(find(Model::parse(RotaryAttention{8, 2, 64, "1"}.graph()), target).maps, 0);
}

}  // namespace
}  // namespace redfuser::codegen_tests
