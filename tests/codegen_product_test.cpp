// Matrix products and what the product library computes along with them.
#include "codegen_harness.h"
#include "text_model.h"

namespace redfuser::codegen_tests {
namespace {

struct Case {
  const char* name;
  std::string graph;
  int launches, products;
  bool bias, addend;  // of the first product
};

std::vector<Case> cases() {
  const std::string inputs =
      "g (float16[m,64] x, float16[64,96] w, float16[96] c, float16[m,96] r) => ";
  const std::string y = inputs + "(float16[m,96] y) { p = MatMul(x, w) ";
  return {
      {"plain", y + "y = Identity(p) }", 0, 1, false, false},
      {"bias", y + "y = Add(c, p) }", 0, 1, true, false},
      {"addend", y + "y = Add(p, r) }", 0, 1, false, true},
      {"both", y + "q = Add(p, c) y = Add(r, q) }", 0, 1, true, true},
      {"two_addends", y + "n = Neg(r) q = Add(p, r) y = Add(q, n) }", 1, 1, false, false},
      {"activation", y + "q = Add(p, c) y = Tanh(q) }", 1, 1, false, false},
      {"wider",
       inputs + "(float[m,96] y) { p = MatMul(x, w) f = Cast<to = 1>(p) "
                "d = Cast<to = 1>(c) y = Add(f, d) }",
       1, 1, false, false},
      // Large enough for a kernel of its own, with the epilogue in it.
      {"tile",
       "g (float16[4096,768] x, float16[768,3072] w, float16[3072] c) => (float16[4096,3072] y) "
       "{ p = MatMul(x, w) q = Add(p, c) y = Gelu(q) }",
       1, 0, false, false},
      {"tile_bfloat_by_rows",
       "g (bfloat16[2,1000,256] x, bfloat16[1999,256] w) => (bfloat16[2,1000,1999] y) "
       "{ v = Transpose<perm = [1,0]>(w) p = MatMul(x, v) y = Tanh(p) }",
       1, 0, false, false},
      // A vector along the rows is none along the columns.
      {"by_rows",
       "g (float16[m,64] x, float16[64,96] w, float16[m,1] c) => (float16[m,96] y) "
       "{ p = MatMul(x, w) y = Add(p, c) }",
       1, 1, false, false},
      // Ragged rows of halves: apart by 16 bytes, then a copy.
      {"ragged",
       "g (float16[m,256] x, float16[99,256] w) => (float16[m,99] y) "
       "{ v = Transpose<perm = [1,0]>(w) y = MatMul(x, v) }",
       1, 1, false, false},
  };
}

class CodegenProducts : public ::testing::TestWithParam<Case> {};

TEST_P(CodegenProducts, LibraryTakesWhatItCan) {
  const Case& c = GetParam();
  const TextModel file(c.graph);
  const GeneratedModel model = generate_model(file.path());
  EXPECT_EQ(model.launches, c.launches);
  ASSERT_EQ(model.products, c.products);
  if (Compiler::find()) expect_compiles(model.kernels, "sm_90a");
  if (c.products == 0) return;
  EXPECT_EQ(model.product_calls[0].bias.defined(), c.bias);
  EXPECT_EQ(model.product_calls[0].addend.defined(), c.addend);
}

INSTANTIATE_TEST_SUITE_P(Epilogues, CodegenProducts, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

// A layer of an encoder: one product for query, key and value, attention, one product, a norm, two
// products and an activation, a norm.
TEST(CodegenModels, LaunchesOfALayer) {
  for (const auto& [name, layers] : {std::pair("bert.dynamo.sdpa", 2), {"bert.dynamo23.sdpa", 2}}) {
    const GeneratedModel model =
        generate_model(std::string(REDFUSER_MODELS_DIR) + "/" + name + "/model.onnx");
    const int around = 2;  // the embeddings' norm and the mask
    EXPECT_LE(model.launches + model.products, 9 * layers + around) << name;
  }
}

}  // namespace
}  // namespace redfuser::codegen_tests
