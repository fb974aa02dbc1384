// Top-k, sort and routing: which kernels compute them, that these compile and fit, and what is
// refused.
#include <algorithm>

#include "codegen/core/device_text.h"
#include "codegen/core/step_builder.h"
#include "codegen/ranking/ranking_select.h"
#include "support/codegen_harness.h"

namespace redfuser::codegen_tests {
namespace {

const std::string kHead = "<ir_version: 9, opset_import: [\"\" : 20]> ";

struct Case {
  const char* name;
  const char* type;
  const char* x;  // dimensions
  const char* y;  // of the results
  const char* k;
  const char* family;                      // of the first kernel that runs, every symbol at 128
  const char* before = "t = Identity(x)";  // t from x
  const char* attributes = "axis = -1";
};

const Case kCases[] = {
    {"routing", "float", "4096,256", "4096,8", "8", "ranking_warp", "t = Softmax<axis = -1>(x)"},
    {"routing_in_bfloat", "bfloat16", "4096,250", "4096,8", "8", "ranking_warp",
     "t = Softmax<axis = -1>(x)"},
    {"one", "float", "512,32000", "512,1", "1", "ranking_block"},
    {"vocabulary", "float", "512,32000", "512,50", "50", "ranking_block"},
    {"vocabulary_in_half", "float16", "512,32001", "512,50", "50", "ranking_block"},
    {"sampling", "float", "1,131072", "1,50", "50", "ranking_segments"},
    {"sampled_weights", "float16", "8,128256", "8,64", "64", "ranking_segments",
     "t = Softmax<axis = -1>(x)"},
    {"many", "float", "1024,32000", "1024,1024", "1024", "ranking_block"},
    {"sorted", "float", "64,4096", "64,4096", "4096", "ranking_block"},
    {"sorted_rising", "double", "64,3000", "64,3000", "3000", "ranking_block", "t = Identity(x)",
     "axis = -1, largest = 0"},
    {"doubles", "double", "64,3000", "64,9", "9", "ranking_block"},
    {"words", "int64", "m,n", "m,4", "4", "ranking_block", "t = Identity(x)",
     "axis = -1, largest = 0"},
    {"bytes", "uint8", "64,3000", "64,9", "9", "ranking_block"},
    {"open", "float", "m,n", "m,64", "64", "ranking_", "t = Softmax<axis = -1>(x)"},
    {"open_rows", "float16", "m,50257", "m,40", "40", "ranking_"},
    {"columns", "float", "64,1000,196", "64,5,196", "5", "ranking_", "t = Identity(x)", "axis = 1"},
    {"of_a_sum", "float", "m,4096", "m,16", "16", "ranking_", "u = Abs(x) t = Add(u, x)"},
};

std::string graph_of(const Case& c) {
  return fmt::format(
      "{}g ({}[{}] x) => ({}[{}] y, int64[{}] i) {{ k = Constant<value = int64[1] {{{}}}>() {} "
      "y, i = TopK<{}>(t, k) }}",
      kHead, c.type, c.x, c.type, c.y, c.y, c.k, c.before, c.attributes);
}

std::vector<codegen::KernelLaunch> running(const GeneratedModel& model) {
  const std::vector<int64_t> symbols(4096, 128);
  std::vector<codegen::KernelLaunch> result;
  for (const codegen::KernelLaunch& kernel : model.kernels) {
    if (evaluate_size(kernel.grid[0], symbols) > 0) result.push_back(kernel);
  }
  return result;
}

class CodegenRanking : public ::testing::TestWithParam<Case> {};

TEST_P(CodegenRanking, TakesOneKernelOfTheFamily) {
  for (const codegen::Target& target : kTargets) {
    const GeneratedModel model = generate_model(Model::parse(graph_of(GetParam())), target);
    const auto kernels = running(model);
    ASSERT_EQ(kernels.size(), 1u);
    EXPECT_TRUE(kernels[0].family.starts_with(GetParam().family)) << kernels[0].family;
    for (const codegen::KernelLaunch& kernel : model.kernels) {
      EXPECT_LE(kernel.shared + kernel.static_shared, target.shared_bytes);
    }
    if (!Compiler::find()) GTEST_SKIP() << "no libnvrtc";
    // The slow path of a division is a call, around which some assemblers save registers.
    constexpr int kCall = 80;
    expect_compiles(model.kernels, target.architecture, kCall);
  }
}

INSTANTIATE_TEST_SUITE_P(Graphs, CodegenRanking, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

// What the only cascade of a graph is refused for; empty if it is not.
std::string refusal(const std::string& graph) {
  const Program program = compile(Model::parse(kHead + graph));
  const fuse::Plan& plan = program.handle()->plan;
  const codegen::Target target;
  std::vector<std::string> reasons;
  for (const fuse::Step& step : plan.steps) {
    const auto* cascade = std::get_if<fuse::CascadeStep>(&step.kind);
    if (cascade == nullptr) continue;
    const ir::Graph copy = clone(*plan.graph);
    codegen::StepBuilder builder(copy, step, target);
    reasons.push_back(ranking_refusal(builder, flat_streaming(builder, *cascade)).value_or(""));
  }
  return reasons.size() == 1 ? reasons[0] : "not one cascade";
}

TEST(CodegenRankingForms, AreRefusedWithAReason) {
  const std::string k = "k = Constant<value = int64[1] {8}>() ";
  EXPECT_EQ(refusal("g (float[m,n] x) => (y, i) {" + k + "y, i = TopK(x, k) }"), "");
  EXPECT_EQ(refusal("g (float[m,n] x) => (y) { y = Softmax<axis = -1>(x) }"),
            "nothing is picked by rank");
  EXPECT_EQ(refusal("g (float[m,h] x, float[h,n] w) => (y, i) {" + k +
                    "s = MatMul(x, w) p = Softmax<axis = -1>(s) y, i = TopK(p, k) }"),
            "an element of the row is a reduction of its own");
  EXPECT_EQ(refusal("g (float[4,100000] x) => (y, i) { k = Constant<value = int64[1] {100000}>() "
                    "y, i = TopK(x, k) }"),
            "a list of 100000 elements does not fit in shared memory");
}

// A product's rows are ranked in memory: no kernel contracts element by element.
TEST(CodegenRankingForms, RouterIsAProductAndARanking) {
  for (const char* bias : {"s = Identity(r)", "s = Add(r, b)"}) {
    const GeneratedModel model = generate_model(
        Model::parse(kHead +
                     "g (float16[4096,7168] x, float16[7168,256] w, float16[256] b) => (y, i) { "
                     "k = Constant<value = int64[1] {8}>() r = MatMul(x, w) " +
                     bias + " f = Cast<to = 1>(s) p = Softmax<axis = -1>(f) y, i = TopK(p, k) }"));
    EXPECT_EQ(model.products, 1) << bias;
    ASSERT_EQ(model.kernels.size(), 1u) << bias;
    EXPECT_EQ(model.kernels[0].family, "ranking_warp") << bias;
  }
}

// A list holds the results and what one tile may add to them, or the row; it fits in a block.
TEST(CodegenRankingConfigs, HaveRoomForATile) {
  for (const codegen::Target& target : kTargets) {
    for (const int64_t k : {1, 2, 50, 128, 129, 1024, 4096}) {
      for (const int64_t length : {k, 2 * k + 1, int64_t{32000}, int64_t{-1}}) {
        for (const int key_bytes : {4, 8}) {
          codegen::RankingFacts facts;
          facts.k = k;
          facts.key_bytes = key_bytes;
          const auto candidates = ranking_candidates(target, facts, 100, length);
          EXPECT_FALSE(candidates.empty()) << k << " of " << length;
          for (const auto& [config, time] : candidates) {
            if (config.part == codegen::RankingConfig::Part::Warp) continue;
            const bool raises = 2 * k <= config.threads;
            const int64_t tile =
                int64_t{facts.width} * config.chunks * (raises ? k : int64_t{config.threads});
            const int64_t capacity = ranking_capacity(facts, config, length);
            const bool whole = config.part == codegen::RankingConfig::Part::Block && length >= 0 &&
                               capacity >= length;
            EXPECT_TRUE(whole || capacity >= k + tile) << to_string(choice_of(config));
            EXPECT_GE(capacity, k);
            EXPECT_LE(ranking_shared_bytes(facts, config, length), target.shared_bytes);
            EXPECT_GT(time, 0);
          }
        }
      }
    }
  }
}

// The main loop with functors by hand: the first 3 of a block's 64 numbers.
TEST(CodegenRankingLoops, CompileWithFunctorsByHand) {
  if (!Compiler::find()) GTEST_SKIP() << "no libnvrtc";
  const std::string_view headers[] = {"device/ranking/ranking_block.cuh"};
  const std::string text =
      codegen::device_prelude(headers) +
      "extern \"C\" __global__ void first(const float* x, unsigned* places) {\n"
      "  using Ranking = BlockRanking<unsigned, 3, 32, 2, 16>;\n"
      "  __shared__ Ranking::Shared memory;\n  Ranking ranking(memory);\n  float own[2];\n"
      "  const auto place = [&](int tile, int i) { return tile + 2 * threadIdx.x + i; };\n"
      "  ranking.run(64, 0,\n"
      "      [&](int tile) {\n        for (int i = 0; i < 2; ++i) if (place(tile, i) < 64) own[i] "
      "= "
      "x[place(tile, i)];\n      },\n      [](int) {},\n"
      "      [&](int, unsigned (&keys)[2], unsigned& there) {\n"
      "        for (int i = 0; i < 2; ++i) keys[i] = rank_key<true>(own[i]);\n"
      "        there = 3;\n      },\n      place);\n  ranking.finish();\n"
      "  if (threadIdx.x < 3) places[threadIdx.x] = memory.list[threadIdx.x].position();\n}\n";
  for (const codegen::Target& target : kTargets) {
    const Compiler::Result result = Compiler::find()->compile(text, target.architecture);
    EXPECT_TRUE(result.compiled) << result.log;
    EXPECT_EQ(result.spilled, 0);
  }
}

}  // namespace
}  // namespace redfuser::codegen_tests
