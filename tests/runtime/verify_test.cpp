// verify_steps(): right programs pass in every type, wrong ones do not.
#include "redfuser/verify.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <ostream>

#include "redfuser/convert.h"
#include "redfuser/inputs.h"
#include "reference/execute/evaluation.h"
#include "runtime/facts/step_bounds.h"
#include "runtime/program/compiled_program.h"
#include "support/graph_builder.h"

namespace redfuser::testing {
namespace {

constexpr const char* kHead = "<ir_version: 10, opset_import: [\"\" : 21]> g ";

// A graph, and the same with one number changed, in place of a wrong kernel.
struct StepCase {
  std::string name;
  std::string text;  // with %, for which one of the numbers stands
  std::string right, wrong;
  std::string wrong_bf16;  // its units are eight times those of fp16
};

std::ostream& operator<<(std::ostream& out, const StepCase& c) { return out << c.name; }

std::string attention(const std::string& scale) {
  return "(float[1,2,48,32] q, float[1,2,96,32] k, float[1,2,96,16] v) => (float[1,2,48,16] y) { "
         "t = Transpose<perm = [0, 1, 3, 2]>(k) s = MatMul(q, t) c = Constant<value_float = " +
         scale + ">() m = Mul(s, c) p = Softmax<axis = -1>(m) y = MatMul(p, v) }";
}

std::vector<StepCase> step_cases() {
  return {
      {"attention", attention("%"), "0.5", "0.51", "0.53"},
      {"norm",
       "(float[8,512] x) => (float[8,512] z) { m = ReduceMean<keepdims = 1>(x, a) "
       "a = Constant<value_ints = [1]>() c = Sub(x, m) s = Mul(c, c) "
       "v = ReduceMean<keepdims = 1>(s, a) e = Constant<value_float = %>() w = Add(v, e) "
       "d = Sqrt(w) y = Div(c, d) g = Tanh(y) z = Add(g, x) }",
       "1e-5", "0.05", "0.2"},
      {"products",
       "(float[24,64] x, float[64,40] u, float[40,8] w) => (float[24,8] y) { a = MatMul(x, u) "
       "r = Relu(a) c = Constant<value_float = %>() d = Mul(r, c) y = MatMul(d, w) }",
       "0.1", "0.101", "0.105"},
      {"quantised",
       "(float[64,256] x) => (float[64,256] y) { a = Exp(x) b = Sin(a) s = Constant<value_float = "
       "%>() z = Constant<value = int8 {3}>() q = QuantizeLinear(b, s, z) "
       "y = DequantizeLinear(q, s, z) }",
       "0.0123", "0.0125", "0.0125"},
      {"quantised_rows",
       "(float[64,256] x, int8[256,16] w) => (int32[64,16] y) { m = ReduceMax<keepdims = 1>(b, i) "
       "b = Abs(x) i = Constant<value_ints = [1]>() f = Constant<value_float = %>() s = Div(m, f) "
       "d = Div(x, s) r = Round(d) q = Cast<to = 3>(r) y = MatMulInteger(q, w) }",
       "127.0", "120.0", "100.0"},
  };
}

std::string filled(const StepCase& c, const std::string& number) {
  std::string text = kHead + c.text;
  return text.replace(text.find('%'), 1, number);
}

Model model_of(const StepCase& c, const std::string& number, DType dtype) {
  const Model model = Model::parse(filled(c, number));
  return dtype == DType::Float32 ? model : convert(model, {dtype}).model;
}

class VerifySteps : public ::testing::TestWithParam<StepCase> {};

TEST_P(VerifySteps, TellsRightFromWrong) {
  for (const DType dtype : {DType::Float32, DType::Float16, DType::BFloat16}) {
    SCOPED_TRACE(name_of(dtype));
    const Model model = model_of(GetParam(), GetParam().right, dtype);
    const Program program = compile(model);
    for (uint64_t seed = 0; seed < 5; ++seed) {
      RandomOptions random;
      random.seed = seed;
      const NamedTensors inputs = random_inputs(model, random);
      const Verification right = verify_steps(model, program, inputs);
      for (const Comparison& failed : right.failed) ADD_FAILURE() << describe(failed);
      EXPECT_GT(right.compared_steps, 0);
      EXPECT_EQ(right.steps, static_cast<int>(program.steps().size()));
    }
    const std::string& number = dtype == DType::BFloat16 ? GetParam().wrong_bf16 : GetParam().wrong;
    const Program wrong = compile(model_of(GetParam(), number, dtype));
    const Verification verification = verify_steps(model, wrong, random_inputs(model));
    EXPECT_FALSE(verification.failed.empty());
    EXPECT_FALSE(verification.first_label.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(All, VerifySteps, ::testing::ValuesIn(step_cases()),
                         [](const auto& info) { return info.param.name; });

// The second product gets the expected value of the first as its input.
TEST(Verify, AnErrorIsNotPassedOn) {
  const auto text = [](const char* scale) {
    return std::string(kHead) +
           "(float[4,8] x, float[8,8] w) => (float[4,8] y) { "
           "c = Constant<value_float = " +
           scale +
           ">() d = Mul(x, c) a = MatMul(d, w) "
           "b = MatMul(a, w) y = MatMul(b, w) }";
  };
  const Model model = Model::parse(text("1.0"));
  const Verification result =
      verify_steps(model, compile(Model::parse(text("1.1"))), random_inputs(model));
  ASSERT_EQ(result.failed.size(), 1u);
  EXPECT_GE(result.compared_steps, 3);
}

// The mean of a row of 16-bit floats is no such float: moments about it are those of the row.
TEST(Verify, MomentsOfNarrowFloatsHaveNoErrorOfTheirOwn) {
  for (const char* type : {"float16", "bfloat16"}) {
    for (const char* squares : {"e = Mul(f, f) r = ReduceMean(e, a) q = Mul(m, m) v = Sub(r, q)",
                                "c = Sub(f, m) e = Mul(c, c) v = ReduceMean(e, a)"}) {
      const Model model = Model::parse(std::string(kHead) + "(" + type +
                                       "[8,256] x) => (float[8,1] v) { f = Cast<to = 1>(x) "
                                       "a = Constant<value_ints = [1]>() m = ReduceMean(f, a) " +
                                       squares + " }");
      RandomOptions random;
      random.ranges["x"] = {100, 104};
      const Program program = compile(model);
      ASSERT_TRUE(program.steps()[0].fused);
      const Verification result =
          verify_steps(model, program, random_inputs(model, random), Tolerance{1e-6, 0});
      for (const Comparison& failed : result.failed) ADD_FAILURE() << type << describe(failed);
    }
  }
}

TEST(Verify, ModelsWithoutStepsSayWhy) {
  const Model model = Model::parse(std::string(kHead) +
                                   "(float[n] x, bool c) => (float[n] y) { y = If(c) <then_branch "
                                   "= t () => (float[n] a) { a = Neg(x) }, else_branch = e () => "
                                   "(float[n] b) { b = Abs(x) }> }");
  const Verification result = verify_steps(model, compile(model), random_inputs(model));
  EXPECT_EQ(result.steps, 0);
  EXPECT_NE(result.reason.find("condition"), std::string::npos) << result.reason;
}

TEST(Verify, RandomOperatorsAreLeftOut) {
  const Model model = Model::parse(std::string(kHead) +
                                   "(float[3] x) => (float[3] y) { r = RandomNormalLike(x) "
                                   "y = MatMul(r, w) w = Constant<value = float[3,3] "
                                   "{1,2,3,4,5,6,7,8,9}>() }");
  const Verification result = verify_steps(model, compile(model), random_inputs(model));
  EXPECT_TRUE(result.failed.empty());
  EXPECT_LT(result.compared_steps, result.steps);
}

// Moved to either side, numbers at an edge pass it or do not.
TEST(Verify, SizesFollowFromTheValuesOfEachEvaluation) {
  const Program program =
      compile(Model::parse(std::string(kHead) + "(float[6] x, float[1] t) => (int64[1,n] y) { "
                                                "c = Less(t, x) y = NonZero(c) }"));
  const ir::Graph& graph = program.handle()->graph();
  const Tensor x = floats({6}, {1, 1, 1, 1, 2, 2}), edge = floats({1}, {1});
  const reference::Evaluation evaluation(graph);
  const reference::Evaluation::Given given = [&](ir::ValueId id) {
    return id == graph.inputs[0] ? &x : id == graph.inputs[1] ? &edge : nullptr;
  };
  EXPECT_EQ(evaluation.evaluate(graph.outputs[0], given, 0).dims(), (Dims{1, 2}));
  EXPECT_GT(evaluation.evaluate(graph.outputs[0], given, 1).size() +
                evaluation.evaluate(graph.outputs[0], given, -1).size(),
            4);
  EXPECT_EQ(evaluation.evaluate(graph.outputs[0], given, 0).dims(), (Dims{1, 2}));
}

// Unique has no evaluation in fp64: the CPU's unfused run stands for it.
TEST(Verify, OperatorsThatAreNotCoveredAreComparedWithTheCpu) {
  const Model model = Model::parse(
      std::string(kHead) + "(float[6] x) => (float[n] z) { r = Relu(x) y = Unique(r) z = Exp(y) }");
  const Verification result = verify_steps(model, compile(model), random_inputs(model));
  EXPECT_TRUE(result.failed.empty());
  ASSERT_EQ(result.against_cpu.size(), 1u);
  EXPECT_NE(result.against_cpu[0].find("[Unique] node"), std::string::npos);
  EXPECT_GT(result.values, 1);
}

struct BoundCase {
  const char* name;
  DType dtype;
  double got, unfused, wide, up, down;
  bool passes;
};

// Single values against the bounds, with no tolerance of the user's.
TEST(Verify, BoundsOfSingleValues) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kHalfUnit = 0x1p-10, kBrainUnit = 0x1p-7;  // at 1
  const BoundCase rows[] = {
      {"two units of fp16", DType::Float16, 1 + 2 * kHalfUnit, 1, 1, 1, 1, true},
      {"three units of fp16", DType::Float16, 1 + 3 * kHalfUnit, 1, 1, 1, 1, false},
      {"two units of bf16", DType::BFloat16, 1 + 2 * kBrainUnit, 1, 1, 1, 1, true},
      {"four units of bf16", DType::BFloat16, 1 + 4 * kBrainUnit, 1, 1, 1, 1, false},
      {"as far as the unfused", DType::Float16, 1.25, 0.75, 1, 1, 1, true},
      {"twice as far", DType::Float16, 1.5, 0.75, 1, 1, 1, false},
      {"nearer than the unfused", DType::Float16, 1, 0.5, 1, 1, 1, true},
      {"subnormals", DType::Float16, 0x1p-23, 0, 0, 0, 0, true},
      {"quantum at an edge", DType::Int8, 5, 4, 4, 5, 4, true},
      {"quantum at an edge, other side", DType::Int8, 3, 4, 4, 4, 3, true},
      {"quantum away from an edge", DType::Int8, 5, 4, 4, 4, 4, false},
      {"two quanta at an edge", DType::Int8, 6, 4, 4, 5, 4, false},
      {"the unfused quantum", DType::UInt8, 4, 4, 5, 5, 5, true},
      {"a bool at an edge", DType::Bool, 1, 0, 0, 1, 0, true},
      {"a bool away from an edge", DType::Bool, 1, 0, 0, 0, 0, false},
      {"NaN of both", DType::Float32, kNaN, kNaN, kNaN, kNaN, kNaN, true},
      {"NaN of the unfused alone", DType::Float32, kNaN, kNaN, 1, 1, 1, true},
      {"the number, not its NaN", DType::Float32, 1, kNaN, 1, 1, 1, true},
      {"another number than either", DType::Float32, 2, kNaN, 1, 1, 1, false},
      {"NaN of neither", DType::Float32, kNaN, 1, 1, 1, 1, false},
      {"infinity of neither", DType::Float16, kInf, 60000, 60000, 60000, 60000, false},
      {"overflow of both", DType::Float16, kInf, kInf, 70000, 70000, 70000, true},
      {"the other infinity", DType::Float16, -kInf, kInf, 70000, 70000, 70000, false},
  };
  for (const BoundCase& row : rows) {
    const bool real = is_float(row.dtype);
    const DType wide = real ? DType::Float64 : row.dtype;
    const auto scalar = [](DType dtype, double value) {
      return make_tensor<double>(dtype, {1}, {value});
    };
    const runtime::ReferenceValues expected{scalar(row.dtype, row.unfused), scalar(wide, row.wide),
                                            scalar(wide, row.up), scalar(wide, row.down)};
    const Comparison result =
        runtime::compare_with(row.name, scalar(row.dtype, row.got), expected, Tolerance{0, 0});
    EXPECT_EQ(result.passed, row.passes) << describe(result);
  }
}

// One wrong element among many that are right is found.
TEST(Verify, BoundsOfOneElementAmongMany) {
  constexpr int64_t kSize = 4096;
  for (const DType dtype : {DType::Float16, DType::BFloat16, DType::Int8}) {
    const bool real = is_float(dtype);
    std::vector<double> exact(kSize);
    for (int64_t i = 0; i < kSize; ++i) {
      exact[static_cast<size_t>(i)] = std::sin(static_cast<double>(i)) * (real ? 1 : 100);
    }
    Tensor wide = make_tensor<double>(DType::Float64, {kSize}, exact);
    const Tensor rounded = make_tensor<double>(dtype, {kSize}, exact);
    if (!real) wide = rounded;
    const runtime::ReferenceValues expected{rounded, wide, wide, wide};
    EXPECT_TRUE(compare_with("right", rounded, expected, Tolerance{0, 0}).passed);
    exact[1000] += real ? 0.05 : 1;
    const Tensor wrong = make_tensor<double>(dtype, {kSize}, exact);
    const Comparison result = runtime::compare_with("wrong", wrong, expected, Tolerance{0, 0});
    EXPECT_EQ(result.mismatches, 1) << describe(result);
    EXPECT_EQ(result.worst_index, Dims{1000});
  }
}

// Kernels that share an error do not excuse each other; a few elements at an edge do.
TEST(Verify, WitnessesErrInFewElements) {
  constexpr int64_t kSize = 1000;
  for (const DType dtype : {DType::Float32, DType::Int8}) {
    for (const int64_t wrong : {1, 10, 11, 1000}) {
      std::vector<double> exact(kSize), erring;
      for (int64_t i = 0; i < kSize; ++i)
        exact[static_cast<size_t>(i)] = static_cast<double>(i % 50);
      erring = exact;
      for (int64_t i = 0; i < wrong; ++i) erring[static_cast<size_t>(i)] += 1;
      const Tensor right = make_tensor<double>(dtype, {kSize}, exact);
      const Tensor wide =
          dtype == DType::Int8 ? right : make_tensor<double>(DType::Float64, {kSize}, exact);
      const Tensor got = make_tensor<double>(dtype, {kSize}, erring);
      const Comparison result =
          runtime::compare_with("value", got, {right, wide, wide, wide}, got, Tolerance{0, 0});
      EXPECT_EQ(result.passed, wrong <= 10) << describe(result);
    }
  }
}

}  // namespace
}  // namespace redfuser::testing
