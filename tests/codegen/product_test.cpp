// Matrix products and the epilogues of the product library.
#include <fmt/format.h>

#include "support/codegen_harness.h"
#include "support/test_paths.h"
#include "support/text_model.h"

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
      // Images that lie transposed, or columns of several: a batch without copies.
      {"transposed_batch",
       "g (float16[b,64,t] x, float16[64,96] w) => (float16[b,t,96] y) "
       "{ r = Transpose <perm = [0,2,1]> (x) y = MatMul(r, w) }",
       0, 1, false, false},
      {"columns_of_a_batch",
       "g (float16[96,64] w, float16[b,64,t] x) => (float16[b,96,t] y) { y = MatMul(w, x) }", 0, 1,
       false, false},
      // Heads and their elements are summed as one axis.
      {"two_axes",
       "g (float16[m,4,16] x, float16[4,16,96] w) => (float16[m,96] y) "
       "{ y = Einsum <equation = \"mhd,hde->me\"> (x, w) }",
       0, 1, false, false},
      // A tile of the library would be mostly empty.
      {"many_of_few_elements",
       "g (float[60000,4,4] x, float16[4] c, float[60000,4,4] w) => (float[60000,4,4] y) "
       "{ p = MatMul(x, w) d = Cast<to = 1>(c) y = Add(p, d) }",
       1, 0, false, false},
      {"many_of_one_element",
       "g (float[2,8,32,9000,4] x, float[2,8,9000,4] w) => (float[2,8,32,9000] y) "
       "{ y = Einsum <equation = \"bhcqp,bhqp->bhcq\"> (x, w) }",
       1, 0, false, false},
      // Large enough for a kernel of its own, with the epilogue in it.
      {"tile",
       "g (float16[4096,768] x, float16[768,3072] w, float16[3072] c) => (float16[4096,3072] y) "
       "{ p = MatMul(x, w) q = Add(p, c) y = Gelu(q) }",
       1, 0, false, false},
      // By the rows at run time, here so many that the library and its map have nothing to do.
      {"tile_of_any_rows",
       "g (float16[b,s,768] x, float16[768,3072] w, float16[3072] c) => (float16[b,s,3072] y) "
       "{ p = MatMul(x, w) q = Add(p, c) y = Gelu(q) }",
       1, 1, false, false},
      {"tile_bfloat_by_rows",
       "g (bfloat16[2,1000,256] x, bfloat16[1999,256] w) => (bfloat16[2,1000,1999] y) "
       "{ v = Transpose<perm = [1,0]>(w) p = MatMul(x, v) y = Tanh(p) }",
       1, 0, false, false},
      // Products of one matrix: of two others, of the halves of one, and in a kernel of their own.
      {"gated",
       "g (float16[m,64] x, float16[64,96] w, float16[64,96] u) => (float16[m,96] y) "
       "{ p = MatMul(x, w) q = MatMul(x, u) t = Tanh(p) y = Mul(t, q) }",
       1, 2, false, false},
      {"gated_halves",
       "g (float16[m,64] x, float16[64,192] w) => (float16[m,96] y) { r = MatMul(x, w) "
       "p, q = Split<axis = -1, num_outputs = 2>(r) t = Tanh(p) y = Mul(t, q) }",
       1, 1, false, false},
      {"gated_tile",
       "g (float16[2048,512] x, float16[512,2048] w) => (float16[2048,1024] y) { r = MatMul(x, w) "
       "p, q = Split<axis = -1, num_outputs = 2>(r) t = Sigmoid(p) y = Mul(t, q) }",
       1, 0, false, false},
      {"gated_bfloat_by_rows",
       "g (bfloat16[2,1000,256] x, bfloat16[1999,256] w, bfloat16[1999,256] u) => "
       "(bfloat16[2,1000,1999] y) { v = Transpose<perm = [1,0]>(w) p = MatMul(x, v) "
       "o = Transpose<perm = [1,0]>(u) q = MatMul(x, o) t = Tanh(p) y = Mul(t, q) }",
       1, 0, false, false},
      {"four_gates",
       "g (float16[2048,512] x, float16[512,2048] w) => (float16[2048,512] y) { r = MatMul(x, w) "
       "p, q, s, t = Split<axis = -1, num_outputs = 4>(r) a = Sigmoid(p) b = Tanh(q) "
       "c = Mul(a, b) d = Sigmoid(s) e = Mul(d, t) y = Add(c, e) }",
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
  if (Compiler::find()) expect_compiles(model.kernels, 90);
  if (c.products == 0) return;
  EXPECT_EQ(model.product_calls[0].bias.defined(), c.bias);
  EXPECT_EQ(model.product_calls[0].addend.defined(), c.addend);
}

INSTANTIATE_TEST_SUITE_P(Epilogues, CodegenProducts, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

// Operands whose rows are not whole vectors are copied to such rows where that pays.
TEST(CodegenProducts, RaggedOperandsArePadded) {
  struct Ragged {
    const char *graph, *sizes;  // n, k and the rows' pitches of the library's product
    size_t copies;
  };
  const Ragged cases[] = {
      {"g (float16[300,1003] x, float16[1003,512] w) => (float16[300,512] y)", "512 1008 1008 512",
       2},
      {"g (float16[300,1000] x, float16[1000,515] w) => (float16[300,515] y)", "520 1000 1000 520",
       1},
      {"g (bfloat16[8,300,1003] x, bfloat16[8,1003,515] w) => (bfloat16[8,300,515] y)",
       "520 1008 1008 520", 2},
      {"g (float16[300,1000] x, float16[1000,512] w) => (float16[300,512] y)", "512 1000 1000 512",
       0},
      // Copies take longer than what they save.
      {"g (float16[300,43] x, float16[43,515] w) => (float16[300,515] y)", "515 43 43 515", 0},
      {"g (float[300,1003] x, float[1003,515] w) => (float[300,515] y)", "515 1003 1003 515", 0},
  };
  for (const Ragged& c : cases) {
    const TextModel file(std::string(c.graph) + " { p = MatMul(x, w) y = Tanh(p) }");
    // The library has no rival there.
    const codegen::Target target = codegen::target_named("sm_80");
    const GeneratedModel model = generate_model(Model::load(file.path()), target);
    ASSERT_EQ(model.products, 1) << c.graph;
    const auto& call = model.product_calls[0];
    EXPECT_EQ(fmt::format("{} {} {} {}", call.n->integer, call.k->integer, call.a_row->integer,
                          call.b_row->integer),
              c.sizes)
        << c.graph;
    EXPECT_EQ(static_cast<size_t>(model.launches), c.copies + 1) << c.graph;
    if (Compiler::find()) expect_compiles(model.kernels, target.architecture);
  }
}

// How many products of one matrix the step of `y` computes.
TEST(CodegenProducts, EverySumIsComputedOnce) {
  struct Gates {
    const char *inputs, *body;
    int products;
  };
  const Gates cases[] = {
      {"float16[64,192] w", "r = MatMul(x, w) p, q = Split<axis = -1, num_outputs = 2>(r)", 2},
      {"float16[64,96] w, float16[64,96] u", "p = MatMul(x, w) q = MatMul(x, u)", 2},
      {"float16[32,64] w, float16[32,64] u",
       "a = Transpose(w) b = Transpose(u) p = MatMul(x, a) q = MatMul(x, b)", 2},
      // Of two matrices.
      {"float16[64,96] w, float16[64,96] u", "p = MatMul(x, w) n = Exp(x) q = MatMul(n, u)", 1},
      // Columns that both sides have, and the same ones in another order.
      {"float16[64,192] w",
       "r = MatMul(x, w) p, o = Split<axis = -1, num_outputs = 2>(r) "
       "f = Constant<value = int64[1] {50}>() t = Constant<value = int64[1] {146}>() "
       "a = Constant<value = int64[1] {1}>() q = Slice(r, f, t, a)",
       0},
      {"float16[64,96] w",
       "p = MatMul(x, w) f = Constant<value = int64[1] {-1}>() "
       "t = Constant<value = int64[1] {-1000}>() a = Constant<value = int64[1] {1}>() "
       "q = Slice(p, f, t, a, f)",
       0},
      // One of them is a result as well.
      {"float16[64,96] w, float16[64,96] u", "p = MatMul(x, w) q = MatMul(x, u) z = Neg(q)", 1},
  };
  for (const Gates& c : cases) {
    const std::string more = std::string(c.body).find("z = ") != std::string::npos ? ", z" : "";
    const Model model = Model::parse(
        "<ir_version: 9, opset_import: [\"\" : 20]> g (float16[m,64] x, " + std::string(c.inputs) +
        ") => (y" + more + ") { " + c.body + " t1 = Tanh(p) y = Mul(t1, q) }");
    CompileOptions options;
    options.certify = false;
    const Program program = compile(model, options);
    size_t products = 0;
    for (const fuse::Step& step : program.handle()->plan.steps) {
      const auto* product = std::get_if<fuse::ProductStep>(&step.kind);
      if (product && program.handle()->graph().values[product->value].name == "y") {
        products = product->b.size();
      }
    }
    EXPECT_EQ(products, static_cast<size_t>(c.products)) << c.body;
  }
}

// A layer of an encoder: one product for query, key and value, attention, one product, a norm, two
// products and an activation, a norm.
TEST(CodegenModels, LaunchesOfALayer) {
  for (const auto& [name, layers] : {std::pair("bert.dynamo.sdpa", 2), {"bert.dynamo23.sdpa", 2}}) {
    const GeneratedModel model =
        generate_model(std::string(test_paths::models()) + "/" + name + "/model.onnx");
    const int around = 2;  // the embeddings' norm and the mask
    EXPECT_LE(model.launches + model.run_products, 9 * layers + around) << name;
  }
}

}  // namespace
}  // namespace redfuser::codegen_tests
