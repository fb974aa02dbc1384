// Operators on texts: letters of other scripts, texts that are not UTF-8, and maps by class.
#include <gtest/gtest.h>

#include "redfuser/export.h"
#include "redfuser/redfuser.h"

namespace redfuser {
namespace {

Model model_of(const std::string& node, const std::string& types = "(string[n] x) => (string[m] y)",
               const std::string& domain = "com.microsoft") {
  return Model::parse("<ir_version: 9, opset_import: [\"\" : 20, \"" + domain + "\" : 1]> g " +
                      types + " { [named] y = " + node + " }");
}

Tensor run(const Model& model, const Tensor& x) {
  const Program program = compile(model);
  return Session(program, {.device = "cpu"}).run({{"x", x}}).at("y");
}

std::string error_of(const Model& model, const Tensor& x) {
  try {
    run(model, x);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(TextOperators, CasesOfEveryScript) {
  const char* const kText =
      "\xc3\x9c"
      "ber A";  // with U+00DC
  const auto lower = [&](const char* locale) {
    const Model model =
        model_of("StringNormalizer<case_change_action = \"LOWER\"" + std::string(locale) + ">(x)");
    return run(model, Tensor::strings({1}, {kText})).text(0);
  };
  EXPECT_EQ(lower(""),
            "\xc3\xbc"
            "ber a");
  EXPECT_EQ(lower(", locale = \"C\""),
            "\xc3\x9c"
            "ber a");
}

TEST(TextOperators, OtherCasesAreRefused) {
  const std::string message = error_of(
      model_of("StringNormalizer<case_change_action = \"TITLE\">(x)"), Tensor::strings({1}, {"a"}));
  EXPECT_NE(message.find("unknown case_change_action \"TITLE\""), std::string::npos) << message;
  EXPECT_NE(message.find("\"named\""), std::string::npos) << message;
}

TEST(TextOperators, ErrorsNameNodeAndTensor) {
  const std::string rest = "pad_value = \"\", mark = 0>(x)";
  const std::pair<std::string, const char*> cases[] = {
      {"Tokenizer<tokenexp = \"a\", mincharnum = 1, " + rest, "element 1 of \"x\" is not UTF-8"},
      {"Tokenizer<tokenexp = \"(\", mincharnum = 1, " + rest, "tokenexp \"(\""},
      {"Tokenizer<separators = [\"\"], mincharnum = 2, " + rest, "mincharnum 2"},
      {"Tokenizer<tokenexp = \"a\", mincharnum = 0, " + rest, "mincharnum 0"}};
  for (const auto& [node, part] : cases) {
    const std::string domain = "com.microsoft.";
    const std::string message =
        error_of(model_of(domain + node, "(string[n] x) => (string[n, m] y)"),
                 Tensor::strings({2}, {"a", "\xff"}));
    EXPECT_NE(message.find(part), std::string::npos) << node << ": " << message;
    EXPECT_NE(message.find("\"named\""), std::string::npos) << message;
  }
  const Model lower = model_of("StringNormalizer<case_change_action = \"LOWER\">(x)");
  EXPECT_NE(error_of(lower, Tensor::strings({1}, {"\xff"})).find("\"x\" is not UTF-8"),
            std::string::npos);
}

TEST(TextOperators, MapsByClassAreTheirTensor) {
  const std::string node = "ai.onnx.ml.ZipMap<classlabels_strings = [\"no\", \"yes\"]>(x)";
  const Tensor x(DType::Float32, {3, 2});
  std::fill_n(const_cast<float*>(x.as<float>()), 6, 0.5f);
  for (const char* types : {"(float[n, 2] x) => (seq(map(string, float)) y)",
                            "(float[n, c] x) => (seq(map(string, float)) y)"}) {
    const Model model = model_of(node, types, "ai.onnx.ml");
    EXPECT_EQ(model.outputs().at(0).classes, (std::vector<std::string>{"no", "yes"}));
    EXPECT_EQ(describe(run(model, x)), "float32[3,2]");
  }
  const Model whole =
      model_of(node, "(float[n, 2] x) => (seq(map(string, float)) y)", "ai.onnx.ml");
  std::string bytes;
  save_to_bytes(whole, nullptr, Emit::Inline, bytes);
  EXPECT_EQ(Model::from_bytes(bytes).outputs().at(0).classes.size(), 2u);
  const Model open = model_of(node, "(float[n, c] x) => (seq(map(string, float)) y)", "ai.onnx.ml");
  EXPECT_NE(error_of(open, Tensor(DType::Float32, {3, 4})), "");
  EXPECT_THROW(model_of(node, "(float[n, 3] x) => (seq(map(string, float)) y)", "ai.onnx.ml"),
               UserError);
}

}  // namespace
}  // namespace redfuser
