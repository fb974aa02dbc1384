// Row cascades on a GPU against their unfused graphs on the CPU; skipped where there is no GPU.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "redfuser/compare.h"
#include "redfuser/inputs.h"
#include "redfuser/redfuser.h"
#include "runtime/gpu/make_cuda_executor.h"

namespace redfuser {
namespace {

struct RowCase {
  const char* name;
  const char* graph;  // over float[m, n] x
  double tolerance = 2e-5;
  double absolute = 2e-6;
  const char* reference = nullptr;  // the graph without the roundings that fusion leaves out
};

std::vector<RowCase> row_cases() {
  return {
      {"softmax", "g (float[m,n] x) => (float[m,n] y) {y = Softmax<axis=-1>(x)}"},
      {"log_softmax", "g (float[m,n] x) => (float[m,n] y) {y = LogSoftmax<axis=-1>(x)}"},
      // An ulp of 16 bits, and the halves below the smallest normal one.
      {"softmax_half",
       "g (float[m,n] x) => (float16[m,n] y) {h = Cast<to=10>(x) y = Softmax<axis=-1>(h)}", 1e-3,
       1e-7, "g (float[m,n] x) => (float16[m,n] y) {s = Softmax<axis=-1>(x) y = Cast<to=10>(s)}"},
      {"softmax_of_halves", "g (float16[m,n] x) => (float16[m,n] y) {y = Softmax<axis=-1>(x)}",
       1e-3, 1e-7,
       "g (float16[m,n] x) => (float16[m,n] y) {f = Cast<to=1>(x) s = Softmax<axis=-1>(f) "
       "y = Cast<to=10>(s)}"},
      {"layernorm_of_halves",
       "g (float16[m,n] x, float16[n] g, float16[n] b) => (float16[m,n] y) "
       "{y = LayerNormalization<axis=-1>(x, g, b)}",
       1e-3, 1e-3,
       "g (float16[m,n] x, float16[n] g, float16[n] b) => (float16[m,n] y) "
       "{f = Cast<to=1>(x) u = Cast<to=1>(g) w = Cast<to=1>(b) "
       "s = LayerNormalization<axis=-1>(f, u, w) y = Cast<to=10>(s)}"},
      {"variance_of_bfloats",
       "g (bfloat16[m,n] x) => (float[m] y) {a = Constant<value = int64[1] {-1}>() f = "
       "Cast<to=1>(x) "
       "c = ReduceMean<keepdims=1>(f, a) d = Sub(f, c) s = Mul(d, d) "
       "y = ReduceMean<keepdims=0>(s, a)}",
       1e-4, 1e-5},
      {"softmax_columns", "g (float[n,m] x) => (float[n,m] y) {y = Softmax<axis=0>(x)}"},
      {"logsumexp",
       "g (float[m,n] x) => (float[m] y) {a = Constant<value = int64[1] {-1}>() "
       "y = ReduceLogSumExp<keepdims=0>(x, a)}"},
      {"variance",
       "g (float[m,n] x) => (float[m] y) {a = Constant<value = int64[1] {-1}>() "
       "c = ReduceMean<keepdims=1>(x, a) d = Sub(x, c) s = Mul(d, d) "
       "y = ReduceMean<keepdims=0>(s, a)}"},
      {"layernorm",
       "g (float[m,n] x) => (float[m,n] y) {a = Constant<value = int64[1] {-1}>() "
       "c = ReduceMean<keepdims=1>(x, a) d = Sub(x, c) s = Mul(d, d) "
       "v = ReduceMean<keepdims=1>(s, a) e = Constant<value = float {0.001}>() w = Add(v, e) "
       "r = Sqrt(w) y = Div(d, r)}",
       1e-4, 1e-5},
      {"absmax",
       "g (float[m,n] x) => (float[m,n] y) {a = Constant<value = int64[1] {-1}>() p = Abs(x) "
       "c = ReduceMax<keepdims=1>(p, a) y = Div(x, c)}"},
      // Operands whose groups have different bytes.
      {"masked_softmax",
       "g (float[m,n] x, bool[m,n] k) => (float[m,n] y) {low = Constant<value = float {-1e4}>() "
       "w = Where(k, x, low) y = Softmax<axis=-1>(w)}"},
      {"softmax_with_half_bias",
       "g (float[m,n] x, float16[1,n] b) => (float[m,n] y) {f = Cast<to=1>(b) s = Add(x, f) "
       "y = Softmax<axis=-1>(s)}"},
      // Elements of the second operand lie between those of a row.
      {"softmax_into_columns",
       "g (float16[m,n] x, float16[n,2] w) => (float16[m,2] y) {p = Softmax<axis=-1>(x) "
       "y = MatMul(p, w)}",
       4e-3, 4e-3},
      {"entropy",
       "g (float[m,n] x) => (float[m] y) {a = Constant<value = int64[1] {-1}>() "
       "p = Softmax<axis=-1>(x) q = LogSoftmax<axis=-1>(x) s = Mul(p, q) "
       "t = ReduceSum<keepdims=0>(s, a) y = Neg(t)}",
       1e-4, 1e-5},
      {"inertia",
       "g (float[m,n] x, float[m,n,3] r) => (float[m] y) {"
       " one = Constant<value = int64[1] {1}>() two = Constant<value = int64[1] {2}>()"
       " ax = Abs(x) w = Unsqueeze(ax, two) mr = Mul(w, r) s = ReduceSum<keepdims = 1>(mr, one)"
       " t = ReduceSum<keepdims = 1>(w, one) c = Div(s, t) d = Sub(r, c) q = Mul(d, d)"
       " u = ReduceSum<keepdims = 0>(q, two) v = Mul(ax, u) y = ReduceSum<keepdims = 0>(v, one) }",
       1e-4, 1e-5},
  };
}

void spoil(Tensor& x, int64_t width) {
  float* data = x.as<float>();
  const int64_t rows = width == 0 ? 0 : x.size() / width;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (int64_t row = 0; row < rows; ++row) {
    float* values = data + row * width;
    const int64_t at = (row * 7919) % width;
    switch (row % 6) {
      case 1:
        values[at] = kInfinity;
        break;
      case 2:
        values[at] = -kInfinity;
        break;
      case 3:
        values[at] = std::nanf("");
        break;
      case 4:
        std::fill(values, values + width, 0.0f);
        break;
      case 5:
        std::fill(values, values + width, -kInfinity);
        break;
      default:
        break;
    }
  }
}

class CudaRows : public testing::TestWithParam<RowCase> {
 protected:
  void SetUp() override {
    if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
  }
};

// With the length in the graph, groups may divide it; a few lanes have a short row.
TEST_P(CudaRows, AgreeForLengthsInTheGraph) {
  const RowCase& row_case = GetParam();
  constexpr int64_t kShort = 128;
  for (const int64_t length :
       {1, 2, 3, 6, 13, 16, 24, 33, 100, 127, 142, 201, 1030, 4099, 9002, 20001, 70000}) {
    const auto parse = [&](const char* graph) {
      std::string text = graph;
      for (size_t at = 0; (at = text.find("n]", at)) != std::string::npos; ++at) {
        text.replace(at, 1, std::to_string(length));
      }
      for (size_t at = 0; (at = text.find("[n,", at)) != std::string::npos; ++at) {
        text.replace(at + 1, 1, std::to_string(length));
      }
      for (size_t at = 0; (at = text.find("n,3]", at)) != std::string::npos; ++at) {
        text.replace(at, 1, std::to_string(length));
      }
      return Model::parse("<ir_version: 9, opset_import: [\"\" : 20]> " + text);
    };
    const Model model = parse(row_case.graph);
    CompileOptions unfused;
    unfused.fuse = false;
    SessionOptions on_gpu;
    on_gpu.device = "cuda";
    Session gpu(compile(model), on_gpu);
    Session cpu(compile(parse(row_case.reference ? row_case.reference : row_case.graph), unfused));
    for (const int64_t rows : {1, 33, 5000}) {
      if (length > kShort && rows > kShort) continue;
      RandomOptions options;
      options.symbols = {{"m", rows}};
      const NamedTensors inputs = random_inputs(model, options);
      const NamedTensors expected = cpu.run(inputs), got = gpu.run(inputs);
      for (const Comparison& comparison :
           compare(got, expected, {row_case.tolerance, row_case.absolute})) {
        EXPECT_TRUE(comparison.passed) << rows << " x " << length << ": " << describe(comparison);
      }
    }
  }
}

TEST_P(CudaRows, AgreeWithTheUnfusedGraph) {
  const RowCase& row_case = GetParam();
  const std::string opset = "<ir_version: 9, opset_import: [\"\" : 20]> ";
  const Model model = Model::parse(opset + row_case.graph);
  const Model reference =
      Model::parse(opset + (row_case.reference ? row_case.reference : row_case.graph));
  CompileOptions unfused;
  unfused.fuse = false;
  SessionOptions on_gpu;
  on_gpu.device = "cuda";
  Session gpu(compile(model), on_gpu), cpu(compile(reference, unfused));
  const std::vector<std::pair<int64_t, int64_t>> sizes = {
      {7, 1},      {5, 2},    {13, 7},   {9, 128},    {6, 129},   {31, 1023},  {12, 1025},
      {600, 64},   {6, 4099}, {6, 8192}, {6, 16384},  {2, 50257}, {12, 65536}, {2, 131072},
      {1, 300007}, {3, 0},    {0, 5},    {2, 524288}, {600, 2048}};
  for (const auto& [m, n] : sizes) {
    for (const bool spoilt : {false, true}) {
      if (spoilt && m * n > 200000) continue;
      RandomOptions options;
      options.symbols = {{"m", m}, {"n", n}};
      options.seed = static_cast<uint64_t>(m + n);
      NamedTensors inputs = random_inputs(model, options);
      if (spoilt && inputs.at("x").dtype() != DType::Float32) continue;
      if (spoilt) spoil(inputs.at("x"), n);
      const NamedTensors expected = cpu.run(inputs), got = gpu.run(inputs), again = gpu.run(inputs);
      for (const Comparison& comparison :
           compare(got, expected, {row_case.tolerance, row_case.absolute})) {
        EXPECT_TRUE(comparison.passed)
            << m << " x " << n << (spoilt ? ", spoilt: " : ": ") << describe(comparison);
      }
      for (const auto& [name, tensor] : got) {
        EXPECT_EQ(0, std::memcmp(tensor.data(), again.at(name).data(), tensor.bytes()))
            << m << " x " << n << ": two runs differ";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, CudaRows, testing::ValuesIn(row_cases()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace redfuser
