// Every stage of models as text, with no GPU.
#include <gtest/gtest.h>

#include <filesystem>

#include "redfuser/redfuser.h"
#include "support/test_paths.h"

namespace redfuser {
namespace {

constexpr const char* kRows =
    "<ir_version: 10, opset_import: [\"\" : 20]> g (float16[m, n] x, float16[n, 64] w) => "
    "(float16[m, 64] y) {"
    "  p = Softmax(x)  s = MatMul(p, w)  y = Exp(s) }";
constexpr const char* kAttention =
    "<ir_version: 10, opset_import: [\"\" : 20]> g (float16[b, 8, n, 64] q, float16[b, 8, n, 64] "
    "k, float16[b, 8, n, 64] v)"
    " => (float16[b, 8, n, 64] y) {"
    "  t = Transpose<perm = [0, 1, 3, 2]>(k)  s = MatMul(q, t)  p = Softmax(s)  y = MatMul(p, v) }";

struct Case {
  const char* name;
  Model (*load)();
  // A part of the text of each stage.
  std::map<std::string, std::string> says;
};
const Case kCases[] = {
    {"rows",
     [] { return Model::parse(kRows); },
     {{"import", " = ReduceMax("}, {"graph", "ReduceMax"}, {"plan", "cascade 0: "}}},
    {"attention",
     [] { return Model::parse(kAttention); },
     {{"passes", "import: "},
      {"cascade", "cascade over j<n"},
      {"streaming", "(rescaled)"},
      {"kernels", "family attention_hopper groups="},
      {"cuda", "p0 = y f16[b,8,n,64]"}}},
    {"llama",
     [] {
       return Model::load(std::string(test_paths::models()) + "/llama.dynamo.sdpa/model.onnx");
     },
     {{"passes", "merge_products: "}, {"plan", "node_Softmax_297"}, {"cuda", "node_Softmax_297"}}},
};

class Dump : public ::testing::TestWithParam<Case> {};

TEST_P(Dump, EveryStageIsStable) {
  const Program program = compile(GetParam().load()), again = compile(GetParam().load());
  for (const char* stage :
       {"import", "passes", "graph", "cascade", "streaming", "plan", "kernels", "cuda"}) {
    const std::string text = program.dump(stage);
    EXPECT_TRUE(text.ends_with("\n")) << stage;
    EXPECT_EQ(text, program.dump(stage)) << stage;
    EXPECT_EQ(text, again.dump(stage)) << stage;
    const auto said = GetParam().says.find(stage);
    if (said == GetParam().says.end()) continue;
    EXPECT_NE(text.find(said->second), std::string::npos) << stage << "\n" << text.substr(0, 4000);
  }
}

TEST_P(Dump, EveryTargetHasKernels) {
  const Program program = compile(GetParam().load());
  const std::string plan = program.dump("plan", "sm_80");
  for (const char* target : {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"}) {
    const std::string kernels = program.dump("kernels", target);
    EXPECT_NE(kernels.find("\n    grid "), std::string::npos) << target;
    EXPECT_EQ(kernels.find("none on a GPU"), std::string::npos) << target;
    EXPECT_NE(program.dump("cuda", target).find("__global__"), std::string::npos) << target;
    EXPECT_EQ(program.dump("plan", target), plan) << target;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Dump, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

std::string error_of(const Program& program, const std::string& stage, const std::string& target) {
  try {
    program.dump(stage, target);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(DumpErrors, NameWhatIsAllowed) {
  const Program program = compile(Model::parse(kRows));
  EXPECT_EQ(error_of(program, "program", "sm_90a"),
            "no stage is called \"program\"; the stages are import, passes, graph, cascade, "
            "streaming, plan, kernels, cuda");
  EXPECT_EQ(error_of(program, "cuda", "sm_90"),
            "no target is called \"sm_90\"; the targets are sm_80, sm_86, sm_89, sm_90a, sm_100a, "
            "sm_120a");
}

TEST(DumpErrors, AStepWithoutAGpuFormIsNamed) {
  const Program program =
      compile(Model::parse("<ir_version: 10, opset_import: [\"\" : 20]> g (float[n] x) => "
                           "(float[k] y) { y = Unique(x) }"));
  for (const char* stage : {"kernels", "cuda"}) {
    EXPECT_NE(program.dump(stage).find("none on a GPU: [Unique] node "), std::string::npos)
        << program.dump(stage);
  }
}

}  // namespace
}  // namespace redfuser
