// Operators without a lowering, from ONNX text to kernels that NVRTC accepts.
#include <fmt/format.h>

#include "support/codegen_harness.h"
#include "support/text_model.h"

namespace redfuser::codegen_tests {
namespace {

struct Case {
  const char* name;
  std::string graph;
};

std::vector<Case> cases() {
  return {
      {"scatter_elements_max",
       "g (float16[m, n] x, int64[k, n] i, float16[k, n] u) => (float16[m, n] y) "
       "{ y = ScatterElements<axis = 0, reduction = \"max\">(x, i, u) }"},
      {"scatter_nd_add",
       "g (float[m, n] x, int64[k, 1] i, float[k, n] u) => (float[m, n] y) "
       "{ y = ScatterND<reduction = \"add\">(x, i, u) }"},
      {"max_pool",
       "g (float[b, 4, 16, 16] x) => (float[b, 4, 8, 8] y) "
       "{ y = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(x) }"},
      {"average_pool_larger_than_its_input",
       "g (float[b, 4, h, 7] x) => (float[b, 4, p, q] y) "
       "{ y = AveragePool<kernel_shape = [2560, 2560], strides = [2560, 2560], ceil_mode = 1>(x) "
       "}"},
  };
}

class CodegenOpaque : public ::testing::TestWithParam<Case> {};

TEST_P(CodegenOpaque, CompilesEverywhere) {
  const TextModel model(GetParam().graph, 19);
  if (!Compiler::find()) GTEST_SKIP() << "no libnvrtc";
  for (const int architecture : {80, 90, 100}) {
    codegen::Target target;
    target.architecture = architecture;
    const GeneratedModel generated = generate_model(model.path(), target);
    ASSERT_EQ(generated.kernels.size(), 1u);
    expect_compiles(generated.kernels, architecture, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, CodegenOpaque, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace redfuser::codegen_tests
