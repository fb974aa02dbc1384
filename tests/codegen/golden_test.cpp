// Generated kernels as they are reviewed: tests/codegen/golden has the text without the headers of
// src/device. REDFUSER_RENEW_GOLDEN=1 writes the files anew; the difference is then read as code.
#include <cstdlib>
#include <fstream>

#include "codegen/core/print_step.h"
#include "support/codegen_harness.h"

namespace redfuser::codegen_tests {
namespace {

struct Case {
  const char* name;
  std::string graph;
};

std::string attention(const std::string& type, const std::string& shape) {
  return "g (" + type + shape + " q, " + type + shape + " k, " + type + shape +
         " v) => (y) { t = Transpose<perm = [0,1,3,2]>(k) s = MatMul(q, t) "
         "p = Softmax<axis = -1>(s) y = MatMul(p, v) }";
}

std::vector<Case> cases() {
  return {
      {"softmax", "g (float16[8192,1024] x) => (y) { y = Softmax<axis = -1>(x) }"},
      {"layernorm",
       "g (float16[4096,768] x, float16[768] g, float16[768] b) => (y) "
       "{ y = LayerNormalization<axis = -1>(x, g, b) }"},
      {"map",
       "g (float16[b,s,768] x, float16[768] c, float16[b,s,768] r) => (y) "
       "{ a = Add(x, c) g = Sigmoid(a) y = Mul(g, r) }"},
      {"attention_mma", attention("float", "[2,4,256,64]")},
      {"attention_split", attention("float16", "[2,4,256,64]")},
      {"attention_hopper", attention("float16", "[2,16,1024,64]")},
      {"attention_large_head", attention("float16", "[2,16,1024,512]")},
      {"product_epilogue",
       "g (float16[2048,1024] x, float16[1024,4096] w, float16[4096] c) => (y) "
       "{ p = MatMul(x, w) q = Add(p, c) y = Gelu(q) }"},
  };
}

std::string read(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class CodegenGolden : public ::testing::TestWithParam<Case> {};

TEST_P(CodegenGolden, TextIsAsReviewed) {
  const std::string head = "<ir_version: 9, opset_import: [\"\" : 20]> ";
  const GeneratedModel model = generate_model(Model::parse(head + GetParam().graph));
  ASSERT_EQ(model.kernels.size(), 1u);
  const std::string text = codegen::cuda_text(model.kernels[0]);
  const std::string path = fmt::format("{}/{}.cu", test_paths::golden(), GetParam().name);
  const char* renew = std::getenv("REDFUSER_RENEW_GOLDEN");
  if (renew != nullptr && std::string_view(renew) == "1") std::ofstream(path) << text;
  EXPECT_EQ(text, read(path)) << path << ": REDFUSER_RENEW_GOLDEN=1 renews it";
}

INSTANTIATE_TEST_SUITE_P(Kernels, CodegenGolden, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace redfuser::codegen_tests
