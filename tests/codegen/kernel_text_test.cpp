// Names, parameters and layout of generated kernels.
#include <filesystem>
#include <regex>

#include "codegen/core/kernel_name.h"
#include "codegen/text/indent.h"
#include "support/codegen_harness.h"

namespace redfuser::codegen_tests {
namespace {

constexpr const char* kModels[] = {"bert.dynamo.sdpa", "gpt2.dynamo.eager", "llama.dynamo.sdpa",
                                   "vit.ts.sdpa"};

class KernelTexts : public ::testing::TestWithParam<codegen::Target> {
 protected:
  static std::vector<codegen::KernelLaunch> kernels() {
    std::vector<codegen::KernelLaunch> all;
    for (const char* name : kModels) {
      const std::string path = std::string(test_paths::models()) + "/" + name + "/model.onnx";
      if (!std::filesystem::exists(path)) ADD_FAILURE() << "no " << path;
      for (auto& kernel : generate_model(path, GetParam()).kernels) {
        all.push_back(std::move(kernel));
      }
    }
    return all;
  }
};

TEST_P(KernelTexts, NamesSayFamilyAndType) {
  const std::regex pattern("[a-z][a-z0-9_]*_(f16|bf16|f32|f64|bool|[iu](8|16|32|64))_[0-9a-f]{8}");
  std::map<std::string, std::string> texts;  // by name
  for (const codegen::KernelLaunch& kernel : kernels()) {
    EXPECT_TRUE(std::regex_match(kernel.name, pattern)) << kernel.name;
    EXPECT_TRUE(kernel.name.starts_with(kernel.family + "_")) << kernel.name;
    EXPECT_NE(kernel.source.find(" " + kernel.name + "("), std::string::npos) << kernel.name;
    const auto [found, added] = texts.emplace(kernel.name, kernel.source);
    EXPECT_EQ(found->second, kernel.source) << kernel.name;
  }
}

TEST_P(KernelTexts, ParametersAreDescribedOutsideOfTheText) {
  for (const codegen::KernelLaunch& kernel : kernels()) {
    const size_t arguments = kernel.views.size() + kernel.buffers.size() + kernel.sizes.size();
    EXPECT_EQ(kernel.parameters.size(), arguments) << kernel.name;
    EXPECT_FALSE(kernel.nodes.empty()) << kernel.name;
    EXPECT_EQ(kernel.source.find(kernel.nodes), std::string::npos) << kernel.name;
  }
}

TEST_P(KernelTexts, HaveNoBranchThatIsDecided) {
  for (const codegen::KernelLaunch& kernel : kernels()) {
    for (const char* dead : {"if (true", "if (false", "true && ", " && true", "while (true &&"}) {
      EXPECT_EQ(kernel.source.find(dead), std::string::npos) << kernel.name << ": " << dead;
    }
  }
}

TEST_P(KernelTexts, AreIndented) {
  for (const codegen::KernelLaunch& kernel : kernels()) {
    const size_t start = kernel.source.find("extern \"C\"");
    ASSERT_NE(start, std::string::npos);
    const std::string text = kernel.source.substr(start);
    EXPECT_EQ(codegen::indented(text), text) << kernel.name;
    EXPECT_NE(text.find(") {\n  "), std::string::npos) << kernel.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, KernelTexts, ::testing::ValuesIn(kTargets), target_name);

// Layers differ in values, not in text.
TEST(KernelSharing, LayersShareTheirText) {
  std::map<std::string, std::set<std::string>> nodes;  // by text
  for (const codegen::KernelLaunch& kernel :
       generate_model(std::string(test_paths::models()) + "/llama.dynamo.sdpa/model.onnx")
           .kernels) {
    if (kernel.family.starts_with("attention")) nodes[kernel.source].insert(kernel.nodes);
  }
  ASSERT_EQ(nodes.size(), 2u);  // of few rows and of many
  for (const auto& [text, labels] : nodes) EXPECT_EQ(labels.size(), 2u) << text.substr(0, 300);
}

TEST(ShortNames, OfTypes) {
  const std::pair<DType, const char*> cases[] = {{DType::Float16, "f16"}, {DType::BFloat16, "bf16"},
                                                 {DType::Float64, "f64"}, {DType::Bool, "bool"},
                                                 {DType::Int64, "i64"},   {DType::UInt8, "u8"}};
  for (const auto& [dtype, name] : cases) EXPECT_EQ(codegen::short_name(dtype), name);
}

}  // namespace
}  // namespace redfuser::codegen_tests
