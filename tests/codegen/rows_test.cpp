// Row cascades and attention, from ONNX text to kernels that NVRTC accepts.
#include <fmt/format.h>

#include "support/codegen_harness.h"
#include "support/text_model.h"

namespace redfuser::codegen_tests {
namespace {

struct Case {
  const char* name;
  std::string graph;
  int launches;        // with every symbol at 128
  std::string kernel;  // of the first launch that runs, or empty
};

std::string attention(const std::string& type, const std::string& extra) {
  return "g (" + type + "[b,8,s,64] q, " + type + "[b,8,t,64] k, " + type + "[b,8,t,64] v) => (" +
         type + "[b,8,s,64] y) { kt = Transpose<perm = [0,1,3,2]>(k) a = MatMul(q, kt) " + extra +
         " p = Softmax<axis = -1>(m) y = MatMul(p, v) }";
}

std::vector<Case> cases() {
  return {
      {"softmax_half",
       "g (float16[8192,1024] x) => (float16[8192,1024] y) {y = Softmax<axis=-1>(x)}", 1,
       "row_resident"},
      {"softmax_open", "g (float[m,n] x) => (float[m,n] y) {y = Softmax<axis=-1>(x)}", 1, ""},
      {"softmax_cluster",
       "g (float16[256,131072] x) => (float16[256,131072] y) {y = Softmax<axis=-1>(x)}", 1,
       "row_cluster"},
      {"softmax_odd", "g (float16[77,1025] x) => (float16[77,1025] y) {y = Softmax<axis=-1>(x)}", 1,
       "row_resident"},
      {"softmax_columns", "g (float[m,n] x) => (float[m,n] y) {y = Softmax<axis=0>(x)}", 1, ""},
      {"softmax_endless",
       "g (float16[8,1048576] x) => (float16[8,1048576] y) {y = Softmax<axis=-1>(x)}", 2,
       "row_partials"},
      {"logsumexp_few",
       "g (float16[64,131072] x) => (float[64] y) {f = Cast<to=1>(x) "
       "a = Constant<value = int64[1] {-1}>() y = ReduceLogSumExp<keepdims=0>(f, a)}",
       1, "row_cluster"},
      {"logsumexp_long",
       "g (float16[256,131072] x) => (float[256] y) {f = Cast<to=1>(x) "
       "a = Constant<value = int64[1] {-1}>() y = ReduceLogSumExp<keepdims=0>(f, a)}",
       1, "row_streaming"},
      {"inertia",
       "g (float[b, n] m, float[b, n, 3] r) => (float[b] y) { one = Constant<value = int64[1] "
       "{1}>()"
       " two = Constant<value = int64[1] {2}>() w = Unsqueeze(m, two) mr = Mul(w, r)"
       " s = ReduceSum<keepdims = 1>(mr, one) t = ReduceSum<keepdims = 1>(w, one) c = Div(s, t)"
       " d = Sub(r, c) q = Mul(d, d) u = ReduceSum<keepdims = 0>(q, two) v = Mul(m, u)"
       " y = ReduceSum<keepdims = 0>(v, one) }",
       1, "row_resident"},
      {"absmax",
       "g (float16[m,4096] x) => (float16[m,4096] y) {i = Constant<value = int64[1] {-1}>() "
       "a = Abs(x) c = ReduceMax<keepdims=1>(a, i) y = Div(x, c)}",
       1, "row_resident"},
      {"entropy",
       "g (float[m,n] x) => (float[m] y) {a = Constant<value = int64[1] {-1}>() "
       "p = Softmax<axis=-1>(x) q = LogSoftmax<axis=-1>(x) s = Mul(p, q) "
       "t = ReduceSum<keepdims=0>(s, a) y = Neg(t)}",
       1, ""},
      {"layernorm",
       "g (float16[4096,8192] x, float16[8192] g, float16[8192] b) => (float16[4096,8192] y) "
       "{y = LayerNormalization<axis=-1>(x, g, b)}",
       1, "row_resident"},
      {"logsumexp",
       "g (float16[4096,8192] x) => (float[4096] y) {f = Cast<to=1>(x) "
       "a = Constant<value = int64[1] {-1}>() y = ReduceLogSumExp<keepdims=0>(f, a)}",
       1, ""},
      {"variance",
       "g (float16[m,n] x) => (float[m] y) {f = Cast<to=1>(x) a = Constant<value = int64[1] "
       "{-1}>() "
       "c = ReduceMean<keepdims=1>(f, a) d = Sub(f, c) s = Mul(d, d) "
       "y = ReduceMean<keepdims=0>(s, a)}",
       1, ""},
      {"integer_sums",
       "g (int64[m,n] x) => (int64[m] y, int64[m] z) {a = Constant<value = int64[1] {-1}>() "
       "y = ReduceSum<keepdims=0>(x, a) z = ReduceProd<keepdims=0>(x, a)}",
       2, ""},
      {"integer_columns",
       "g (int32[m,n] x) => (int32[n] y) {a = Constant<value = int64[1] {0}>() "
       "y = ReduceSum<keepdims=0>(x, a)}",
       1, ""},
      {"integer_products",
       "g (uint8[m,k] x, uint8[k,n] w, uint8 z) => (int32[m,n] y) {y = MatMulInteger(x, w, z)}", 1,
       "product_integer"},
      {"integer_arg_max",
       "g (int64[m,n] x) => (int64[m] y) {y = ArgMax<axis = 1, keepdims = 0>(x)}", 1, ""},
      {"integer_topk",
       "g (int64[m,n] x) => (int64[m,4] y, int64[m,4] i) {k = Constant<value = int64[1] {4}>() "
       "y, i = TopK(x, k)}",
       1, ""},
      {"attention_half", attention("float16", "m = Identity(a)"), 1, "attention_split"},
      {"attention_bfloat", attention("bfloat16", "m = Identity(a)"), 1, "attention_split"},
      {"attention_float", attention("float", "m = Identity(a)"), 1, "attention_split"},
      {"attention_one_query",
       "g (float16[b,8,1,64] q, float16[b,8,t,64] k, float16[b,8,t,64] v) => "
       "(float16[b,8,1,64] y) {t = Transpose<perm=[0,1,3,2]>(k) s = MatMul(q, t) "
       "p = Softmax<axis=-1>(s) y = MatMul(p, v)}",
       1, "attention_split"},
      {"attention_cap", attention("float16", "h = Tanh(a) m = Add(h, h)"), 1, "attention_split"},
  };
}

class CodegenRows : public ::testing::TestWithParam<Case> {};

TEST_P(CodegenRows, CompilesEverywhere) {
  const TextModel model(GetParam().graph, 21);
  const GeneratedModel generated = generate_model(model.path());
  EXPECT_EQ(generated.launches, GetParam().launches);
  EXPECT_EQ(generated.products, 0);
  ASSERT_FALSE(generated.kernels.empty());
  if (!GetParam().kernel.empty()) {
    EXPECT_EQ(generated.kernels[0].family, GetParam().kernel);
  }
  if (!Compiler::find()) GTEST_SKIP() << "no libnvrtc";
  // The slow path of a division is a call, around which some assemblers save a register.
  constexpr int kCall = 4;
  expect_compiles(generated.kernels, 90, 0);
  for (const int architecture : {80, 100}) {
    codegen::Target target;
    target.architecture = architecture;
    expect_compiles(generate_model(model.path(), target).kernels, architecture, kCall);
  }
}

// Heads larger than any attention kernel takes: scores and weights in memory, nothing by the row
// kernel that contracts element by element.
TEST(CodegenRows, LargeHeadsGoThroughTheLibrary) {
  for (const char* type : {"float", "float16"}) {
    const TextModel model(
        fmt::format("g ({0}[b,8,s,1280] q, {0}[b,8,t,1280] k, {0}[b,8,t,400] v) => "
                    "({0}[b,8,s,400] y) {{kt = Transpose<perm=[0,1,3,2]>(k) "
                    "a = MatMul(q, kt) p = Softmax<axis=-1>(a) y = MatMul(p, v)}}",
                    type),
        21);
    const GeneratedModel generated = generate_model(model.path());
    EXPECT_EQ(generated.products, 2) << type;
    bool weights = false;
    for (const codegen::KernelLaunch& kernel : generated.kernels) {
      weights |= kernel.family.starts_with("row_");
      EXPECT_FALSE(kernel.family.starts_with("attention")) << kernel.family;
    }
    EXPECT_TRUE(weights) << type;
    if (Compiler::find()) expect_compiles(generated.kernels, 90, 0);
  }
}

TEST(CodegenRows, EqualKernelsHaveEqualText) {
  const TextModel model(
      "g (float[m,64] x) => (float[m,64] y) {a = Softmax<axis=-1>(x) b = Exp(a) "
      "c = Softmax<axis=0>(b) y = Softmax<axis=-1>(c)}");
  const GeneratedModel first = generate_model(model.path()), second = generate_model(model.path());
  ASSERT_EQ(first.kernels.size(), second.kernels.size());
  for (size_t i = 0; i < first.kernels.size(); ++i) {
    EXPECT_EQ(first.kernels[i].source, second.kernels[i].source);
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, CodegenRows, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace redfuser::codegen_tests
