// Every exported model of models/ has a GPU form of so many launches.
#include "codegen_harness.h"

namespace redfuser::codegen_tests {
namespace {

struct Expected {
  const char* model;
  int launches, products;
};

constexpr Expected kModels[] = {
    {"bert.dynamo.sdpa", 16, 12},    {"bert.dynamo23.sdpa", 16, 12},
    {"bert.ts.eager", 18, 12},       {"gemma2.dynamo.eager", 20, 15},
    {"gpt2.dynamo.eager", 14, 9},    {"llama.dynamo.eager", 18, 15},
    {"llama.dynamo.sdpa", 18, 15},   {"mpt.ts.eager", 13, 9},
    {"resnet.dynamo.eager", 12, 8},  {"swin.dynamo.eager", 38, 26},
    {"t5_encoder.ts.eager", 13, 12}, {"vit.dynamo.eager", 20, 13},
    {"vit.ts.sdpa", 22, 13},         {"whisper_encoder.dynamo.sdpa", 20, 14},
};

TEST(CodegenModels, LaunchCounts) {
  for (const Expected& expected : kModels) {
    const GeneratedModel model =
        generate_model(std::string(REDFUSER_MODELS_DIR) + "/" + expected.model + "/model.onnx");
    EXPECT_EQ(model.launches, expected.launches) << expected.model;
    EXPECT_EQ(model.products, expected.products) << expected.model;
  }
}

}  // namespace
}  // namespace redfuser::codegen_tests
