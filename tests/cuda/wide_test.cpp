// Attention with values wider than a warpgroup holds, against fp32 evaluations of the graph.
// Skipped where there is no GPU.
#include <gtest/gtest.h>

#include "redfuser/inputs.h"
#include "runtime/gpu/make_cuda_executor.h"
#include "support/float_comparison.h"

namespace redfuser {
namespace {

struct Case {
  const char* what;
  const char* type;   // of the operands
  const char* graph;  // T is the type
};

const char* const kSoftmax =
    "f = Cast<to = 1>(s) h = Constant<value = float {0.07}>() c = Mul(f, h) ";
const char* const kWeights = "p = Softmax<axis = -1>(m) b = CastLike(p, q) y = MatMul(b, v) }";

const Case kCases[] = {
    {"latent", "float16",
     "g (T[2, 128, 576] q, T[2, n, 576] kv) => (T[2, 128, 512] y) {"
     " from = Constant<value = int64[1] {0}>() to = Constant<value = int64[1] {512}>()"
     " axis = Constant<value = int64[1] {2}>() v = Slice(kv, from, to, axis)"
     " t = Transpose<perm = [0, 2, 1]>(kv) s = MatMul(q, t) SOFTMAX m = Identity(c) "},
    {"latent_behind", "bfloat16",
     "g (T[3, 70, 384] q, T[3, n, 384] kv) => (T[3, 70, 260] y) {"
     " from = Constant<value = int64[1] {64}>() to = Constant<value = int64[1] {324}>()"
     " axis = Constant<value = int64[1] {2}>() v = Slice(kv, from, to, axis)"
     " t = Transpose<perm = [0, 2, 1]>(kv) s = MatMul(q, t) SOFTMAX m = Identity(c) "},
    {"all_columns", "float16",
     "g (T[1, 200, 320] q, T[1, n, 320] v) => (T[1, 200, 320] y) {"
     " t = Transpose<perm = [0, 2, 1]>(v) s = MatMul(q, t) SOFTMAX m = Identity(c) "},
    {"pairs", "float16",
     "g (T[45, 3, 288] q, T[45, n, 288] v) => (T[45, 3, 288] y) {"
     " t = Transpose<perm = [0, 2, 1]>(v) s = MatMul(q, t) SOFTMAX m = Identity(c) "},
    {"pairs_of_segments", "float16",
     "g (T[12, 3, 288] q, T[12, n, 288] v) => (T[12, 3, 288] y) {"
     " t = Transpose<perm = [0, 2, 1]>(v) s = MatMul(q, t) SOFTMAX m = Identity(c) "},
    {"apart", "bfloat16",
     "g (T[2, 3, 5, 576] q, T[2, 3, n, 576] k, T[2, 3, n, 512] v) => (T[2, 3, 5, 512] y) {"
     " t = Transpose<perm = [0, 1, 3, 2]>(k) s = MatMul(q, t) SOFTMAX m = Identity(c) "},
    {"causal", "float16",
     "g (T[1, 2, n, 320] q, T[1, 2, n, 320] k, T[1, 2, n, 400] v) => (T[1, 2, n, 400] y) {"
     " t = Transpose<perm = [0, 1, 3, 2]>(k) s = MatMul(q, t) SOFTMAX"
     " z = Constant<value = int64 {0}>() one = Constant<value = int64 {1}>()"
     " sh = Shape<start = 2, end = 3>(q) e = Squeeze(sh) i = Range(z, e, one)"
     " a = Constant<value = int64[1] {1}>() r = Unsqueeze(i, a) sees = LessOrEqual(i, r)"
     " low = Constant<value = float {-1e30}>() m = Where(sees, c, low) "},
    {"bias", "float16",
     "g (T[2, 2, 3, 288] q, T[2, 2, n, 288] k, T[2, 2, n, 288] v, float[2, 1, 1, n] bias) =>"
     " (T[2, 2, 3, 288] y) {"
     " t = Transpose<perm = [0, 1, 3, 2]>(k) s = MatMul(q, t) SOFTMAX m = Add(c, bias) "},
};

Model model_of(const Case& c, const std::string& type) {
  return model_of_type(replaced(c.graph, "SOFTMAX", kSoftmax) + kWeights, type);
}

class CudaWide : public testing::TestWithParam<Case> {};

TEST_P(CudaWide, AgreesWithFloats) {
  if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
  const Case& c = GetParam();
  const Model model = model_of(c, c.type);
  FloatComparison comparison(model, model_of(c, "float"));
  const bool square = std::string(c.what) == "causal";
  for (const int64_t n : {1, 7, 64, 127, 129, square ? 333 : 4097}) {
    RandomOptions random;
    random.seed = static_cast<uint64_t>(n);
    random.symbols["n"] = n;
    comparison.expect_near(random_inputs(model, random), std::to_string(n));
  }
}

INSTANTIATE_TEST_SUITE_P(Graphs, CudaWide, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.what); });

}  // namespace
}  // namespace redfuser
