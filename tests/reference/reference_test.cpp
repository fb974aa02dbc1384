// src/reference: models and graphs against known results, and src/cpu against it.
#include "reference/execute/evaluation.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <ostream>
#include <random>

#include "redfuser/compare.h"
#include "redfuser/inputs.h"
#include "redfuser/io.h"
#include "redfuser/redfuser.h"
#include "support/graph_builder.h"
#include "support/test_paths.h"

namespace redfuser::testing {
namespace {

using reference::Evaluation;
using reference::Rounding;

constexpr const char* kHead = "<ir_version: 10, opset_import: [\"\" : 21]> g ";

NamedTensors run_on(const std::string& device, const Program& program, const NamedTensors& inputs) {
  SessionOptions options;
  options.device = device;
  options.threads = 2;
  return Session(program, options).run(inputs);
}

// The CPU, fused and not, against the reference.
void expect_cpu_agrees(const std::string& text, const RandomOptions& random = {},
                       const Tolerance& tolerance = {1e-4, 1e-5}) {
  const Model model = Model::parse(kHead + text);
  const NamedTensors inputs = random_inputs(model, random);
  for (const bool fuse : {false, true}) {
    CompileOptions options;
    options.fuse = fuse;
    const Program program = compile(model, options);
    const NamedTensors expected = run_on("reference", program, inputs);
    for (const Comparison& result : compare(run_on("cpu", program, inputs), expected, tolerance)) {
      EXPECT_TRUE(result.passed) << describe(result) << "\n" << text;
    }
  }
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(test_paths::models())) {
    if (std::filesystem::exists(entry.path() / "model.onnx"))
      names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class ReferenceModels : public ::testing::TestWithParam<std::string> {};

TEST_P(ReferenceModels, HaveTheirOutputs) {
  const std::string folder = std::string(test_paths::models()) + "/" + GetParam();
  const Program program = compile(Model::load(folder + "/model.onnx"));
  const NamedTensors outputs = run_on("reference", program, load_tensors(folder + "/inputs.npz"));
  for (const Comparison& result : compare(outputs, load_tensors(folder + "/outputs.npz"))) {
    EXPECT_TRUE(result.passed) << describe(result);
  }
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(All, ReferenceModels, ::testing::ValuesIn(model_names()), test_name);

// Some operators have no form in integers of few bits.
bool takes(const std::string& body, const std::string& type) {
  const bool wide = type == "int32" || type == "int64";
  if (body.find("CumSum") != std::string::npos || body.find("MatMul") != std::string::npos ||
      body.find("ReduceSum") != std::string::npos || body.find("ReduceProd") != std::string::npos) {
    return wide || type == "uint32" || type == "uint64";
  }
  if (body.find("ReduceMax") != std::string::npos) return type.find("16") == std::string::npos;
  return true;
}

// Nodes on x, with whole numbers of every integer type.
TEST(Reference, IntegersOfTheCpu) {
  const char* bodies[] = {"y = Add(x, z)",
                          "y = Sub(x, z)",
                          "y = Mul(x, z)",
                          "y = Div(x, z)",
                          "y = Mod(x, z)",
                          "y = Max(x, z)",
                          "y = Min(x, z)",
                          "y = Sign(x)",
                          "y = Abs(x)",
                          "y = BitwiseXor(x, z)",
                          "y = BitwiseNot(x)",
                          "y = CumSum(x, one) one = Constant<value = int64 {1}>()",
                          "y = ReduceSum<keepdims = 1>(x)",
                          "y = ReduceMax<keepdims = 1>(x)",
                          "y = ReduceProd<keepdims = 1>(x)",
                          "t = Transpose(z) y = MatMul(x, t)"};
  for (const char* type :
       {"int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"}) {
    RandomOptions random;
    random.ranges["x"] = {type[0] == 'u' ? 0 : -100, 100};
    random.ranges["z"] = {1, 100};
    for (const char* body : bodies) {
      SCOPED_TRACE(std::string(type) + ": " + body);
      if (!takes(body, type)) continue;
      expect_cpu_agrees(
          fmt::format("({0}[5,7] x, {0}[5,7] z) => ({0}[a,b] y) {{ {1} }}", type, body), random,
          {0, 0});
    }
    for (const char* to : {"1", "2", "3", "5", "6", "7", "9", "12", "13"}) {
      expect_cpu_agrees(
          fmt::format("({}[5,7] x, {}[5,7] z) => (int32[a,b] w, bool[a,b] v) {{ "
                      "y = Cast<to = {}>(x) w = Cast<to = 6>(y) v = Cast<to = 9>(y) }}",
                      type, type, to),
          random, {0, 0});
    }
  }
}

TEST(Reference, FloatsOfTheCpu) {
  const char* bodies[] = {
      "y = Exp(x)",
      "y = Log(x)",
      "y = Sqrt(x)",
      "y = Sin(x)",
      "y = Tan(x)",
      "y = Tanh(x)",
      "y = Erf(x)",
      "y = Acosh(x)",
      "y = Round(x)",
      "y = Floor(x)",
      "y = Reciprocal(x)",
      "y = Pow(x, z)",
      "y = Div(x, z)",
      "c = Less(x, z) y = Where(c, x, z)",
      "y = Mod<fmod = 1>(x, z)",
      "y = Softmax<axis = 0>(x)",
      "y = LogSoftmax<axis = 2>(x)",
      "y = ReduceL2<keepdims = 1>(x)",
      "y = ReduceLogSumExp<keepdims = 1>(x)",
      "k = ArgMax<axis = 1>(x) y = Cast<to = 1>(k)",
      "k = ArgMin<axis = 2, select_last_index = 1>(x) y = Cast<to = 1>(k)",
      "n = Constant<value_ints = [3]>() y, i = TopK<axis = 2>(x, n)",
      "n = Constant<value_ints = [2]>() v, i = TopK<axis = 0, largest = 0>(x, n) "
      "y = Cast<to = 1>(i)",
      "y = Einsum<equation = \"abc,abd->acd\">(x, z)",
      "y = Einsum<equation = \"abc,dbc->ad\">(x, z)",
      "y = Einsum<equation = \"abc,abc,abc->b\">(x, z, x)",
      "t = Transpose<perm = [0, 2, 1]>(z) y = MatMul(x, t)"};
  RandomOptions random;
  random.ranges["x"] = {0.1, 4};
  random.ranges["z"] = {0.5, 3};
  for (const char* body : bodies) {
    SCOPED_TRACE(body);
    expect_cpu_agrees(fmt::format("(float[3,4,5] x, float[3,4,5] z) => (float[] y) {{ {} }}", body),
                      random);
  }
}

TEST(Reference, ConvolutionsOfTheCpu) {
  const char* bodies[] = {
      "y = Conv(x, w)",
      "y = Conv(x, w, b)",
      "y = Conv<strides = [2, 3], pads = [1, 0, 2, 1], dilations = [1, 2]>(x, w)",
      "y = Conv<auto_pad = \"SAME_LOWER\", strides = [2, 2]>(x, w)",
      "y = Conv<group = 2>(x, h)",
      "y = ConvTranspose<strides = [2, 1], output_padding = [1, 0]>(x, w4)",
      "y = ConvTranspose<group = 2, pads = [1, 1, 0, 0]>(x, w4)",
      "y = ConvTranspose<output_shape = [20, 11], strides = [2, 1]>(x, w4)",
      "y = MaxPool<kernel_shape = [3, 2], strides = [2, 2], ceil_mode = 1>(x)",
      "v, i = MaxPool<kernel_shape = [2, 2], pads = [1, 1, 0, 0]>(x) y = Cast<to = 1>(i)",
      "v, i = MaxPool<kernel_shape = [2, 2], storage_order = 1>(x) y = Cast<to = 1>(i)",
      "y = AveragePool<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(x)",
      "y = AveragePool<kernel_shape = [3, 3], pads = [1, 1, 1, 1], count_include_pad = 1, "
      "ceil_mode = 1, strides = [2, 2]>(x)",
      "y = AveragePool<kernel_shape = [2, 2], auto_pad = \"SAME_UPPER\">(x)",
      "y = LpPool<kernel_shape = [2, 3], p = 3>(x)"};
  for (const char* body : bodies) {
    SCOPED_TRACE(body);
    expect_cpu_agrees(
        fmt::format("(float[2,4,9,11] x, float[6,4,3,2] w, float[6] b, "
                    "float[6,2,3,2] h, float[4,3,3,2] w4) => (float[] y) {{ {} }}",
                    body));
  }
}

// OpDef::element beside the CPU's kernels.
TEST(Reference, ElementsOfTheCpusKernels) {
  const char* graphs[] = {
      "(float[2,5,3,1] x) => (float[] y) { y = DFT(x) }",
      "(float[2,5,3,2] x) => (float[] y) { a = Constant<value = int64 {2}>() "
      "n = Constant<value = int64 {4}>() y = DFT<inverse = 1>(x, n, a) }",
      "(float[2,5,3,2] x) => (float[] y) { a = Constant<value = int64 {0}>() "
      "n = Constant<value = int64 {7}>() y = DFT(x, n, a) }",
      "(float[2,5,1] x) => (float[] y) { y = DFT<onesided = 1>(x) }",
      "(float[2,5,2] x) => (float[] y) { y = DFT<onesided = 1, inverse = 1>(x) }",
      "(float[2,5,2] x) => (float[] y) { n = Constant<value = int64 {9}>() "
      "y = DFT<onesided = 1, inverse = 1>(x, n) }",
      "(float[2,30,1] x, float[8] w) => (float[] y) { s = Constant<value = int64 {3}>() "
      "y = STFT(x, s, w) }",
      "(float[2,30,2] x) => (float[] y) { s = Constant<value = int64 {5}>() "
      "l = Constant<value = int64 {7}>() y = STFT<onesided = 0>(x, s, , l) }",
      "(float[3,4,4] x) => (float[] y) { y = Det(x) }",
      "(float[2,1,1] x) => (float[] y) { y = Det(x) }",
      "(float[2,12,20] x) => (float[] y) { i = Constant<value = int64[2] {5, 6}>() "
      "k = Constant<value = int64[2] {2, 2}>() y = Col2Im(x, i, k) }",
      "(float[2,12,15] x) => (float[] y) { i = Constant<value = int64[2] {7, 6}>() "
      "k = Constant<value = int64[2] {2, 3}>() "
      "y = Col2Im<strides = [2, 1], pads = [0, 1, 1, 0], dilations = [2, 1]>(x, i, k) }",
      "(float[2,4,7,7] x, float[6,2,3,3] w, float[2,36,3,5] o, float[6] c, float[2,18,3,5] m) => "
      "(float[] y) { y = DeformConv<group = 2, offset_group = 2, kernel_shape = [3, 3], "
      "strides = [2, 1], pads = [0, 1, 0, 1], dilations = [1, 2]>(x, w, o, c, m) }",
      "(float[1,1,4,4] x, float[2,1,2,2] w, float[1,8,3,3] o) => (float[] y) "
      "{ f = Constant<value = float {3}>() d = Mul(o, f) y = DeformConv(x, w, d) }",
      "(float[2,3,6,5] x, float[4,4] r, int64[4] i) => (float[] y) "
      "{ f = Constant<value = float {4}>() b = Mul(r, f) "
      "y = RoiAlign<output_height = 3, output_width = 2, sampling_ratio = 2>(x, b, i) }",
      "(float[2,3,6,5] x, float[4,4] r, int64[4] i) => (float[] y) "
      "{ f = Constant<value = float {4}>() b = Mul(r, f) "
      "y = RoiAlign<output_height = 2, output_width = 3, sampling_ratio = 3, mode = \"max\", "
      "coordinate_transformation_mode = \"output_half_pixel\", spatial_scale = 0.5>(x, b, i) }",
      "(float[2,70,6,5] x, float[4,4] r, int64[4] i) => (float[] y) "
      "{ f = Constant<value = float {4}>() b = Mul(r, f) "
      "y = RoiAlign<output_height = 3, output_width = 2, sampling_ratio = 9>(x, b, i) }",
      "(float[2,70,6,5] x, float[4,4] r, int64[4] i) => (float[] y) "
      "{ f = Constant<value = float {4}>() b = Mul(r, f) "
      "y = RoiAlign<output_height = 2, output_width = 2, sampling_ratio = 8, mode = \"max\">(x, b, "
      "i) }",
      "(float[2,3,6,5] x, int64[4,5] r) => (float[] y) "
      "{ f = Constant<value = int64[5] {1, 2, 1, 5, 4}>() s = Mul(r, f) b = Cast<to = 1>(s) "
      "y = MaxRoiPool<pooled_shape = [2, 3]>(x, b) }",
      "(float[3,4,2] x, int64 a) => (float[] y) { y = CumSum(x, a) }",
      "(float[3,4,2] x, int64 a) => (float[] y) { y = CumSum<exclusive = 1, reverse = 1>(x, a) }"};
  for (const char* graph : graphs) {
    SCOPED_TRACE(graph);
    expect_cpu_agrees(graph);
  }
}

// Draws a graph of matrices, each node on those before it, as text.
class RandomGraph {
 public:
  explicit RandomGraph(uint64_t seed) : random_(seed) {}

  std::string text(int nodes) {
    add("", kRows, kColumns);  // the inputs
    add("", kRows, kColumns);
    for (int i = 0; i < nodes; ++i) add_node();
    return fmt::format(
        "(float[{0},{1}] v0, float[{0},{1}] v1) => (float[] v{2}, float[] v{3}) {{ {4} }}", kRows,
        kColumns, values_.size() - 1, values_.size() - 2, body_);
  }

 private:
  static constexpr int kRows = 6, kColumns = 10;
  struct Matrix {
    int rows, columns;
  };

  int below(size_t n) { return static_cast<int>(random_() % n); }
  void add(const std::string& node, int rows, int columns) {
    if (!node.empty()) body_ += fmt::format("v{} = {} ", values_.size(), node);
    values_.push_back({rows, columns});
  }

  void add_node() {
    const int a = below(values_.size());
    const Matrix x = values_[static_cast<size_t>(a)];
    const int b = partner(x);
    switch (below(9)) {
      case 0: {
        const char* names[] = {"Tanh", "Sigmoid", "Abs", "Neg", "Relu", "Erf", "Softplus", "Gelu"};
        return add(fmt::format("{}(v{})", names[below(std::size(names))], a), x.rows, x.columns);
      }
      case 1: {
        const char* names[] = {"Add", "Sub", "Mul", "Max", "Min"};
        return add(fmt::format("{}(v{}, v{})", names[below(std::size(names))], a, b), x.rows,
                   x.columns);
      }
      case 2:
        return add(fmt::format("Transpose(v{})", a), x.columns, x.rows);
      case 3:
        return add(fmt::format("Softmax<axis = {}>(v{})", below(2), a), x.rows, x.columns);
      case 4: {
        const char* names[] = {"ReduceMean", "ReduceMax", "ReduceSum"};
        const int axis = below(2);
        body_ += fmt::format(
            "a{} = Constant<value_ints = [{}]>() r{} = {}<keepdims = 1>(v{}, a{}) ", values_.size(),
            axis, values_.size(), names[below(std::size(names))], a, values_.size());
        return add(fmt::format("Sub(v{}, r{})", a, values_.size()), x.rows, x.columns);
      }
      case 5: {
        body_ += fmt::format("t{} = Transpose(v{}) s{} = MatMul(v{}, t{}) ", values_.size(), b,
                             values_.size(), a, values_.size());
        return add(fmt::format("Tanh(s{})", values_.size()), x.rows, x.rows);
      }
      case 6:
        return add(fmt::format("Concat<axis = 0>(v{}, v{})", a, b), 2 * x.rows, x.columns);
      case 7:
        body_ += fmt::format("c{} = Less(v{}, v{}) ", values_.size(), a, b);
        return add(fmt::format("Where(c{}, v{}, v{})", values_.size(), b, a), x.rows, x.columns);
      default:
        body_ += fmt::format("i{} = Constant<value_ints = [{}, 0, -1]>() ", values_.size(),
                             below(static_cast<size_t>(x.rows)));
        return add(fmt::format("Gather<axis = 0>(v{}, i{})", a, values_.size()), 3, x.columns);
    }
  }

  // A value of the same sizes, perhaps itself.
  int partner(Matrix x) {
    std::vector<int> equal;
    for (size_t i = 0; i < values_.size(); ++i) {
      if (values_[i].rows == x.rows && values_[i].columns == x.columns) {
        equal.push_back(static_cast<int>(i));
      }
    }
    return equal[static_cast<size_t>(below(equal.size()))];
  }

  std::mt19937_64 random_;
  std::vector<Matrix> values_;
  std::string body_;
};

TEST(Reference, RandomGraphsOfTheCpu) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    expect_cpu_agrees(RandomGraph(seed).text(4 + static_cast<int>(seed % 12)));
  }
}

// A graph of one node on one constant.
Tensor evaluated(const std::string& op, Tensor input, ir::Attributes attributes, int opset) {
  GraphBuilder builder;
  const ir::ValueId x = builder.input("x", input.dtype(), input.dims());
  const ir::ValueId y = builder.node(op, {x}, std::move(attributes), 1, opset);
  return reference::Evaluation(builder.graph).evaluate(y, [&](ir::ValueId id) {
    return id == x ? &input : nullptr;
  });
}

TEST(Reference, CastsToNarrowerFloatsRoundWhereEveryNodeRounds) {
  GraphBuilder builder;
  const ir::ValueId x = builder.input("x", DType::Float32, {1});
  const ir::ValueId half = builder.node("Cast", {x}, {{"to", int64_t{10}}});
  const ir::ValueId y = builder.node("Cast", {half}, {{"to", int64_t{1}}});
  const Tensor third = floats({1}, {1.0f / 3});
  const reference::Evaluation::Given given = [&](ir::ValueId id) {
    return id == x ? &third : nullptr;
  };
  const Tensor exact = reference::Evaluation(builder.graph).evaluate(y, given);
  EXPECT_EQ(exact.dtype(), DType::Float64);
  EXPECT_EQ(exact.as<double>()[0], static_cast<double>(1.0f / 3));
  const Tensor rounded =
      reference::Evaluation(builder.graph, reference::Rounding::EveryNode).evaluate(y, given);
  EXPECT_EQ(rounded.as<double>()[0], 0.333251953125);
}

TEST(Reference, SumsKeepWhatFloatsLose) {
  const Tensor sum =
      evaluated("ReduceSum", floats({3}, {1e8f, 1, -1e8f}), {{"keepdims", int64_t{0}}}, 13);
  EXPECT_EQ(sum.as<double>()[0], 1);
}

TEST(Reference, ArgumentsOfJumpsMoveToEitherSide) {
  GraphBuilder builder;
  const ir::ValueId x = builder.input("x", DType::Float32, {4});
  const ir::ValueId y = builder.node("Floor", {x});
  const Tensor edge = floats({4}, {2, 2, 2.5, 3});
  const reference::Evaluation::Given given = [&](ir::ValueId id) {
    return id == x ? &edge : nullptr;
  };
  const reference::Evaluation evaluation(builder.graph);
  const Tensor up = evaluation.evaluate(y, given, 1), down = evaluation.evaluate(y, given, -1);
  EXPECT_EQ(values_of(evaluation.evaluate(y, given)), (std::vector<double>{2, 2, 2, 3}));
  for (const int64_t i : {0, 1, 3}) {
    EXPECT_EQ(std::fabs(up.as<double>()[i] - down.as<double>()[i]), 1) << i;
  }
  EXPECT_EQ(up.as<double>()[2], down.as<double>()[2]);
}

// Only the nodes that the wanted value needs are computed.
TEST(Reference, GivenValuesEndTheEvaluation) {
  GraphBuilder builder;
  const ir::ValueId x = builder.input("x", DType::Float32, {2});
  const ir::ValueId a = builder.node("Exp", {x}), b = builder.node("Neg", {a});
  const Tensor given_a = floats({2}, {3, 4});
  const Tensor result = reference::Evaluation(builder.graph).evaluate(b, [&](ir::ValueId id) {
    return id == a ? &given_a : nullptr;
  });
  EXPECT_EQ(values_of(result), (std::vector<double>{-3, -4}));
}

// A branch that is not selected reads nothing of an empty tensor.
TEST(Reference, EmptyTensors) {
  const char* bodies[] = {"y = Concat<axis = 0>(e, x)",
                          "y = Pad(e, p, f)",
                          "a = Concat<axis = 0>(x, e) y = ReduceMax<keepdims = 1>(a)",
                          "y = MatMul(t, e) t = Transpose(e)",
                          "y = ReduceSum<keepdims = 1>(e)",
                          "s = Softmax(e) y = Concat<axis = 0>(s, x)"};
  for (const char* body : bodies) {
    SCOPED_TRACE(body);
    expect_cpu_agrees(
        fmt::format("(float[3,4] x, float[0,4] e) => (float[] y) {{ p = "
                    "Constant<value_ints = [1, 0, 1, 2]>() f = "
                    "Constant<value_float = 7.0>() {} }}",
                    body));
  }
}

TEST(Reference, RefusesByName) {
  const Model model = Model::parse(std::string(kHead) +
                                   "(float[2,2] x) => (float[a,b] y) { y = RandomNormalLike(x) }");
  const Program program = compile(model);
  try {
    run_on("reference", program, random_inputs(model));
    FAIL() << "ran";
  } catch (const UserError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("[RandomNormalLike] node"), std::string::npos) << message;
    EXPECT_NE(message.find("the reference executor does not cover"), std::string::npos) << message;
  }
}

TEST(Reference, RefusesPositionsOutOfRange) {
  const Model model = Model::parse(std::string(kHead) +
                                   "(float[4] x, int64[2] i) => (float[2] y) { y = Gather(x, i) }");
  NamedTensors inputs = random_inputs(model);
  inputs["i"] = integers({2}, {1, 4});
  EXPECT_THROW(run_on("reference", compile(model), inputs), UserError);
}

}  // namespace
}  // namespace redfuser::testing
