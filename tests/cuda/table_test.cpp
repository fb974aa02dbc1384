// Generated kernels against the CPU executor: odd and empty sizes, special values. Skipped where
// there is no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "redfuser/compare.h"
#include "redfuser/convert.h"
#include "redfuser/inputs.h"
#include "redfuser/redfuser.h"
#include "runtime/gpu/make_cuda_executor.h"
#include "support/float_comparison.h"

namespace redfuser {
namespace {

struct Case {
  const char* name;
  const char* graph;
  bool special = true;  // NaN and infinities among the inputs
};

// Every graph is over float[m, n] x.
const Case kCases[] = {
    {"chain", "=> (float[m, n] y) { a = Exp(x) b = Sigmoid(a) c = Sub(b, x) y = Tanh(c) }"},
    {"broadcast",
     "=> (float[m, n] y) { a = Constant<value = int64[1] {1}>() r = ReduceMax(x, a)"
     "  z = Constant<value = int64[1] {0}>() c = ReduceMin(x, z) s = Add(r, c) y = Mul(s, x) }"},
    {"two_outputs", "=> (float[m, n] y, float[n, m] z) { y = Relu(x) z = Transpose(x) }"},
    {"concat", "=> (float[m, k] y) { a = Neg(x) y = Concat<axis = 1>(x, a, x) }"},
    {"pad",
     "=> (float[p, q] y) { a = Constant<value = int64[4] {1, 2, 0, 3}>()"
     "  v = Constant<value = float {7}>() y = Pad(x, a, v) }"},
    {"slice_backwards",
     "=> (float[m, n] y) { s = Constant<value = int64[1] {-1}>()"
     "  e = Constant<value = int64[1] {-9223372036854775807}>() a = Constant<value = int64[1] "
     "{1}>()"
     "  y = Slice(x, s, e, a, s) }"},
    {"where",
     "=> (float[m, n] y) { z = Constant<value = float {0}>() c = Less(x, z) a = Abs(x)"
     "  y = Where(c, a, z) }"},
    {"arg_max_of_integers",
     "=> (int64[m] y) { i = Cast<to = 7>(x) y = ArgMax<axis = 1, keepdims = 0>(i) }", false},
    {"arg_max", "=> (int64[m] y) { y = ArgMax<axis = 1, keepdims = 0>(x) }", false},
    {"cumsum", "=> (float[m, n] y) { a = Constant<value = int64 {1}>() y = CumSum(x, a) }", false},
    {"exclusive_cumsum",
     "=> (float[m, n] y) { a = Constant<value = int64 {1}>() y = CumSum<exclusive = 1>(x, a) }"},
    {"integer_sums",
     "=> (int64[m] y, int64[n] z) { i = Cast<to = 7>(x) a = Constant<value = int64[1] {1}>()"
     "  y = ReduceSum<keepdims = 0>(i, a) b = Constant<value = int64[1] {0}>()"
     "  z = ReduceSum<keepdims = 0>(i, b) }",
     false},
    {"softmax", "=> (float[m, n] y) { y = Softmax<axis = -1>(x) }"},
    {"softmax_columns", "=> (float[m, n] y) { y = Softmax<axis = 0>(x) }"},
    {"log_softmax", "=> (float[m, n] y) { y = LogSoftmax<axis = -1>(x) }"},
    {"logsumexp",
     "=> (float[m] y) { a = Constant<value = int64[1] {1}>()"
     "  y = ReduceLogSumExp<keepdims = 0>(x, a) }"},
    {"variance",
     "=> (float[m] y) { a = Constant<value = int64[1] {1}>() c = ReduceMean(x, a) d = Sub(x, c)"
     "  s = Mul(d, d) y = ReduceMean<keepdims = 0>(s, a) }"},
    {"normalised",
     "=> (float[m, n] y) { a = Constant<value = int64[1] {1}>() c = ReduceMean(x, a) d = Sub(x, c)"
     "  s = Mul(d, d) v = ReduceMean(s, a) e = Constant<value = float {0.00001}>() t = Add(v, e)"
     "  r = Sqrt(t) y = Div(d, r) }"},
    {"column_sums",
     "=> (float[n] y) { a = Constant<value = int64[1] {0}>() y = ReduceSum<keepdims = 0>(x, a) }"},
    {"halves",
     "=> (float[m, n] y) { h = Cast<to = 10>(x) s = Softmax<axis = -1>(h) e = Exp(s)"
     "  y = Cast<to = 1>(e) }"},
    {"gather_rows",
     "=> (float[m, n] y) { s = Shape<end = 1>(x) z = Constant<value = int64 {0}>()"
     "  one = Constant<value = int64 {1}>() e = Squeeze(s) i = Range(z, e, one) k = Neg(i)"
     "  j = Sub(k, one) y = Gather(x, j) }"},
    {"conv_transpose",
     "=> (float[1, 2, h, w] y)<float[1, 2, 3, 2] k = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}> {"
     "  a = Constant<value = int64[2] {0, 1}>() d = Constant<value = int64[4] {1, 1, 0, 0}>() p = "
     "Pad(x, d) i = Unsqueeze(p, a)"
     "  y = ConvTranspose<strides = [2, 3], pads = [1, 0, 0, 1]>(i, k) }",
     false},
    {"conv_transpose_groups",
     "=> (float[1, 2, h, w] y)<float[2, 1, 2, 3] k = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}> {"
     "  a = Constant<value = int64[2] {0, 1}>() d = Constant<value = int64[4] {1, 1, 0, 0}>() p = "
     "Pad(x, d) i = Unsqueeze(p, a) j = Concat<axis = 1>(i, i)"
     "  y = ConvTranspose<group = 2, dilations = [2, 1], output_padding = [1, 0],"
     "  strides = [2, 1]>(j, k) }",
     false},
    {"resize_linear",
     "=> (float[p, q] y)<float[2] s = {1.5, 0.7}> { y = Resize<mode = \"linear\">(x, , s) }",
     false},
    {"resize_cubic",
     "=> (float[p, q] y)<float[2] s = {2, 1.3}> {"
     "  y = Resize<mode = \"cubic\", coordinate_transformation_mode = \"align_corners\">(x, , s) }",
     false},
    {"resize_nearest",
     "=> (float[p, q] y)<float[2] s = {0.6, 3}> { y = Resize<mode = \"nearest\">(x, , s) }"},
    {"scatter_add",
     "=> (float[m, n] y) { s = Shape(x) z = ConstantOfShape<value = int64[1] {0}>(s)"
     "  y = ScatterElements<axis = 0, reduction = \"add\">(x, z, x) }",
     false},
    {"convolution",
     "=> (float[1, 1, m, n] y)<float[1, 1, 3, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9}> {"
     "  a = Constant<value = int64[2] {0, 1}>() i = Unsqueeze(x, a)"
     "  y = Conv<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(i, w) }",
     false},
};

constexpr int64_t kSizes[] = {0, 1, 2, 7, 31, 1009, 1023, 1025};

void add_special_values(Tensor& tensor) {
  float* values = tensor.as<float>();
  const float special[] = {NAN, INFINITY, -INFINITY, 0.0f, -0.0f, 1e-38f};
  for (int64_t i = 3; i < tensor.size(); i += 97) values[i] = special[i / 97 % 6];
}

void fill(Tensor& tensor, int64_t begin, int64_t end, float value) {
  for (int64_t i = begin; i < std::min(end, tensor.size()); ++i) tensor.as<float>()[i] = value;
}

NamedTensors inputs_for(const Model& model, int64_t m, int64_t n, bool special) {
  RandomOptions options;
  options.seed = static_cast<uint64_t>(m * 5000 + n);
  for (const ValueInfo& input : model.inputs()) {
    for (const auto& dim : input.dims) {
      if (dim.symbol == "m") options.symbols["m"] = m;
      if (dim.symbol == "n") options.symbols["n"] = n;
    }
  }
  NamedTensors inputs = random_inputs(model, options);
  if (!special || m < 5) return inputs;
  Tensor& x = inputs.at("x");
  add_special_values(x);
  fill(x, 0, n, 0);
  fill(x, n, 2 * n, -INFINITY);
  return inputs;
}

bool same_bits(const NamedTensors& a, const NamedTensors& b) {
  for (const auto& [name, tensor] : a) {
    if (std::memcmp(tensor.data(), b.at(name).data(), tensor.bytes()) != 0) return false;
  }
  return true;
}

class CudaTable : public testing::TestWithParam<Case> {};

TEST_P(CudaTable, AgreesWithTheCpu) {
  if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
  const Model model =
      Model::parse(std::string("<ir_version: 9, opset_import: [\"\" : 20]> g (float[m, n] x) ") +
                   GetParam().graph);
  const Program program = compile(model);
  SessionOptions options;
  options.device = "cuda";
  Session gpu(program, options), cpu(program);
  for (const int64_t m : {int64_t{0}, int64_t{1}, int64_t{5}, int64_t{67}}) {
    for (const int64_t n : kSizes) {
      // The largest of nothing is an error of the graph's.
      if ((m == 0 || n == 0) && std::string(GetParam().graph).find("Max") != std::string::npos) {
        continue;
      }
      const NamedTensors inputs = inputs_for(model, m, n, GetParam().special);
      NamedTensors expected;
      try {
        expected = cpu.run(inputs);
      } catch (const UserError&) {
        EXPECT_THROW(gpu.run(inputs), UserError) << m << " x " << n;
        continue;
      }
      const NamedTensors got = gpu.run(inputs);
      for (const Comparison& comparison : compare(got, expected)) {
        EXPECT_TRUE(comparison.passed) << m << " x " << n << ": " << describe(comparison);
      }
      EXPECT_TRUE(same_bits(got, gpu.run(inputs))) << m << " x " << n;
      EXPECT_TRUE(same_bits(got, gpu.run(inputs))) << m << " x " << n << " by a CUDA graph";
    }
  }
}

// Rows that a block's registers do not hold, in the strategies for long rows.
TEST(CudaLongRows, AgreeWithTheCpu) {
  if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
  for (const char* name : {"softmax", "log_softmax", "logsumexp", "variance", "normalised"}) {
    const auto found = std::find_if(std::begin(kCases), std::end(kCases),
                                    [&](const Case& c) { return std::string(c.name) == name; });
    for (const int64_t n : {32768, 65537, 131072, 1048576}) {
      // Static sizes choose a strategy.
      std::string graph = std::string("g (float[m, n] x) ") + found->graph;
      for (size_t at = graph.find(", n]"); at != std::string::npos; at = graph.find(", n]")) {
        graph.replace(at, 4, ", " + std::to_string(n) + "]");
      }
      const Model model = Model::parse("<ir_version: 9, opset_import: [\"\" : 20]> " + graph);
      const Program program = compile(model);
      SessionOptions options;
      options.device = "cuda";
      Session gpu(program, options), cpu(program);
      const NamedTensors inputs = inputs_for(model, 3, n, false);
      const NamedTensors got = gpu.run(inputs);
      for (const Comparison& comparison : compare(got, cpu.run(inputs))) {
        EXPECT_TRUE(comparison.passed) << name << " " << n << ": " << describe(comparison);
      }
      EXPECT_TRUE(same_bits(got, gpu.run(inputs))) << name << " " << n;
    }
  }
}

// Sequences of odd lengths, causal and not, in fp16 with fp32 statistics.
TEST(CudaAttention, AgreesWithTheCpu) {
  if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
  for (const char* mask : {"m = Identity(f)",
                           "z = Constant<value = int64 {0}>() one = Constant<value = int64 {1}>()"
                           " sh = Shape<start = 2, end = 3>(q) e = Squeeze(sh) i = Range(z, e, one)"
                           " a = Constant<value = int64[1] {1}>() r = Unsqueeze(i, a)"
                           " c = LessOrEqual(i, r) low = Constant<value = float {-1e30}>()"
                           " m = Where(c, f, low)"}) {
    const Model model = Model::parse(
        "<ir_version: 9, opset_import: [\"\" : 20]> g (float16[2, 4, m, 64] q, "
        "float16[2, 4, n, 64] k, float16[2, 4, n, 64] v) => (float16[2, 4, m, 64] y) {"
        "  t = Transpose<perm = [0, 1, 3, 2]>(k) s = MatMul(q, t) f0 = Cast<to = 1>(s)"
        "  h = Constant<value = float {0.125}>() f = Mul(f0, h) " +
        std::string(mask) + "  p = Softmax<axis = -1>(m) b = Cast<to = 10>(p) y = MatMul(b, v) }");
    const Program program = compile(model);
    SessionOptions options;
    options.device = "cuda";
    Session gpu(program, options), cpu(program);
    for (const int64_t n : {1, 2, 7, 64, 129, 257, 1023, 1025}) {
      const NamedTensors inputs = inputs_for(model, n, n, false);
      const NamedTensors got = gpu.run(inputs);
      for (const Comparison& comparison : compare(got, cpu.run(inputs), {0, 2e-3})) {
        EXPECT_TRUE(comparison.passed) << n << ": " << describe(comparison);
      }
      EXPECT_TRUE(same_bits(got, gpu.run(inputs))) << n;
    }
  }
}

// Attention of `queries` of 8 heads that share 2 heads of `keys` keys and values.
std::string few_rows(const std::string& type, int size, int queries,
                     const std::string& keys = "n") {
  const std::string width = std::to_string(size), count = std::to_string(queries);
  return "<ir_version: 9, opset_import: [\"\" : 20]> g (" + type + "[2, 8, " + count + ", " +
         width + "] q, " + type + "[2, 2, " + keys + ", " + width + "] k, " + type + "[2, 2, " +
         keys + ", " + width + "] v) => (" + type + "[2, 8, " + count + ", " + width +
         "] y) { two = Constant<value = int64[1] {2}>() "
         "g = Constant<value = int64[5] {1, 1, 4, 1, 1}>() "
         "r = Constant<value = int64[4] {2, 8, -1, " +
         width +
         "}>() ku = Unsqueeze(k, two) ke = Expand(ku, g) kh = Reshape(ke, r) "
         "vu = Unsqueeze(v, two) ve = Expand(vu, g) vh = Reshape(ve, r) "
         "t = Transpose<perm = [0, 1, 3, 2]>(kh) s = MatMul(q, t) f = Cast<to = 1>(s) "
         "h = Constant<value = float {0.125}>() m = Mul(f, h) p = Softmax<axis = -1>(m) "
         "b = CastLike(p, q) y = MatMul(b, vh) }";
}

// As near to fp32 as the unfused graph is, and the same twice. `keys`: of the graph; `lengths`: of
// its inputs.
void expect_near(const std::string& type, int size, int queries, const std::string& keys,
                 const std::vector<int64_t>& lengths) {
  const Model model = Model::parse(few_rows(type, size, queries, keys));
  FloatComparison comparison(model, Model::parse(few_rows("float", size, queries, keys)));
  for (const int64_t n : lengths) {
    comparison.expect_near(inputs_for(model, n, n, false),
                           fmt::format("{} {} {} {}", type, size, queries, n));
  }
}

// Few queries, whose keys are split, and head sizes that no attention kernel takes.
TEST(CudaAttention, FewRowsAgreeWithFloats) {
  if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
  for (const char* type : {"float", "float16"}) {
    for (const int size : {24, 64, 160, 320}) {
      for (const int queries : {1, 3, 20}) {
        expect_near(type, size, queries, "n", {1, 7, 129, 1025, 5000});
      }
    }
  }
}

// A number of segments that is known: merged at once, or in several goes.
TEST(CudaAttention, FewRowsOfKnownLengths) {
  if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
  for (const char* type : {"float", "float16", "bfloat16"}) {
    for (const int64_t keys : {600, 2100, 9000}) {
      expect_near(type, 128, 2, std::to_string(keys), {keys});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Graphs, CudaTable, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace redfuser
