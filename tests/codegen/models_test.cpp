// Every exported model of models/ has a GPU form of so many launches.
#include "support/codegen_harness.h"
#include "support/test_paths.h"

namespace redfuser::codegen_tests {
namespace {

struct Expected {
  const char* model;
  int launches, products;
};

constexpr Expected kModels[] = {
    {"bert.dynamo.sdpa", 10, 8},    {"bert.dynamo23.sdpa", 10, 8},
    {"bert.ts.eager", 12, 8},       {"gemma2.dynamo.eager", 22, 9},
    {"gpt2.dynamo.eager", 11, 9},   {"llama.dynamo.eager", 18, 9},
    {"llama.dynamo.sdpa", 18, 9},   {"mpt.ts.eager", 12, 9},
    {"resnet.dynamo.eager", 11, 0}, {"swin.dynamo.eager", 24, 18},
    {"t5_encoder.ts.eager", 11, 8}, {"vit.dynamo.eager", 10, 9},
    {"vit.ts.sdpa", 12, 9},         {"whisper_encoder.dynamo.sdpa", 12, 8},
};

TEST(CodegenModels, LaunchCounts) {
  for (const Expected& expected : kModels) {
    const GeneratedModel model =
        generate_model(std::string(test_paths::models()) + "/" + expected.model + "/model.onnx");
    EXPECT_EQ(model.launches, expected.launches) << expected.model;
    EXPECT_EQ(model.products, expected.products) << expected.model;
  }
}

}  // namespace
}  // namespace redfuser::codegen_tests
