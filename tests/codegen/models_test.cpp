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
    {"bert.dynamo.sdpa", 14, 2},    {"bert.dynamo23.sdpa", 14, 2},
    {"bert.ts.eager", 14, 2},       {"gemma2.dynamo.eager", 28, 1},
    {"gpt2.dynamo.eager", 16, 1},   {"llama.dynamo.eager", 23, 1},
    {"llama.dynamo.sdpa", 23, 1},   {"mpt.ts.eager", 15, 1},
    {"resnet.dynamo.eager", 11, 0}, {"swin.dynamo.eager", 27, 11},
    {"t5_encoder.ts.eager", 16, 0}, {"vit.dynamo.eager", 17, 0},
    {"vit.ts.sdpa", 17, 0},         {"whisper_encoder.dynamo.sdpa", 18, 0},
};

TEST(CodegenModels, LaunchCounts) {
  for (const Expected& expected : kModels) {
    const GeneratedModel model =
        generate_model(std::string(test_paths::models()) + "/" + expected.model + "/model.onnx");
    EXPECT_EQ(model.launches, expected.launches) << expected.model;
    EXPECT_EQ(model.run_products, expected.products) << expected.model;
  }
}

}  // namespace
}  // namespace redfuser::codegen_tests
