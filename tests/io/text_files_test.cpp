// Texts in NumPy and JSON files.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "redfuser/io.h"
#include "redfuser/redfuser.h"

namespace redfuser {
namespace {

using Texts = std::vector<std::string>;

class TextFiles : public ::testing::Test {
 protected:
  TextFiles() {
    std::string pattern = (std::filesystem::temp_directory_path() / "texts.XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~TextFiles() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  // A .npy file with these bytes behind the header.
  std::string written(const std::string& descr, const std::string& shape, const std::string& data) {
    std::string header =
        "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }\n";
    std::string bytes = "\x93NUMPY\x01";
    bytes += '\0';
    bytes += static_cast<char>(header.size());
    bytes += '\0';
    std::ofstream(path("a.npy"), std::ios::binary) << bytes << header << data;
    return path("a.npy");
  }

  static Texts texts_of(const Tensor& tensor) {
    Texts texts;
    for (int64_t i = 0; i < tensor.size(); ++i) texts.push_back(tensor.text(i));
    return texts;
  }

  std::filesystem::path folder_;
};

const Texts kTexts = {"plain",
                      "",
                      "\xc3\x9c"
                      "ber",
                      "\xe2\x80\x94",
                      "\xf0\x9f\x98\x80!",
                      " a b "};

TEST_F(TextFiles, RoundTrip) {
  for (const char* suffix : {".npz", ".npy", ".json", ".pb"}) {
    SCOPED_TRACE(suffix);
    save_tensors(path(std::string("x") + suffix), {{"x", Tensor::strings({2, 3}, kTexts)}});
    const Tensor x = load_tensors(path(std::string("x") + suffix)).at("x");
    ASSERT_EQ(describe(x), "string[2,3]");
    EXPECT_EQ(texts_of(x), kTexts);
  }
}

TEST_F(TextFiles, EmptyTensor) {
  save_tensors(path("x.npz"), {{"x", Tensor::strings({0, 3}, {})}});
  EXPECT_EQ(describe(load_tensors(path("x.npz")).at("x")), "string[0,3]");
}

TEST_F(TextFiles, NumPyForms) {
  using std::string_literals::operator""s;
  const Tensor bytes = load_tensors(written("|S3", "(2,)", "ab\0\xc3\xbc\0"s)).at("a");
  EXPECT_EQ(texts_of(bytes), (Texts{"ab", "\xc3\xbc"}));
  const Tensor big = load_tensors(written(">U2", "(1,)", "\0\0\0a\0\0\0\xfc"s)).at("a");
  EXPECT_EQ(texts_of(big), (Texts{"a\xc3\xbc"}));
}

TEST_F(TextFiles, RefusedForms) {
  using std::string_literals::operator""s;
  EXPECT_THROW(load_tensors(written("<U1", "(1,)", "\0\0\x11\0"s)), UserError);  // U+110000
  EXPECT_THROW(load_tensors(written("<U1", "(1,)", "\0\xd8\0\0"s)), UserError);  // a surrogate
  EXPECT_THROW(load_tensors(written("<U2", "(1,)", "\0\0\0\0"s)), UserError);    // too short
  EXPECT_THROW(load_tensors(written("<U0", "(1,)", "")), UserError);
  EXPECT_THROW(load_tensors(written("<Ux", "(1,)", "abcd")), UserError);
}

TEST_F(TextFiles, TextsThatAFormatCannotHold) {
  using std::string_literals::operator""s;
  const NamedTensors invalid{{"x", Tensor::strings({1}, {"\xff"})}};
  EXPECT_THROW(save_tensors(path("x.npz"), invalid), UserError);
  EXPECT_THROW(save_tensors(path("x.json"), invalid), UserError);
  EXPECT_THROW(save_tensors(path("x.npz"), {{"x", Tensor::strings({1}, {"a\0"s})}}), UserError);
}

TEST_F(TextFiles, BareJsonTexts) {
  std::ofstream(path("a.json")) << R"({"x": ["a", "NaN"], "y": ["NaN", 1]})";
  const NamedTensors loaded = load_tensors(path("a.json"));
  EXPECT_EQ(texts_of(loaded.at("x")), (Texts{"a", "NaN"}));
  EXPECT_EQ(loaded.at("y").dtype(), DType::Float32);
}

}  // namespace
}  // namespace redfuser
