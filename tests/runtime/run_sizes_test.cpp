// Models whose ranks and types follow from a run: plans for the sizes of a run, against the same
// model evaluated node by node.
#include <gtest/gtest.h>

#include "onnx/import/import.h"
#include "redfuser/compare.h"
#include "redfuser/redfuser.h"
#include "runtime/cpu/plan_run.h"
#include "runtime/program/compiled_program.h"
#include "support/control_flow.h"
#include "support/graph_builder.h"

namespace redfuser::testing {
namespace {

// Branches of different ranks, as exporters write a squeeze whose size is open, before a state.
constexpr const char* kSqueezed =
    "(float[n, m] x, float[m] s) => (float[a] z, float[m] t) { d = Shape(x) "
    "zero = Constant<value_ints = [0]>() first = Gather(d, zero) "
    "one = Constant<value_ints = [1]>() single = Equal(first, one) "
    "y = If(single) <then_branch = p () => (float[m] a) { a = Squeeze(x, zero) }, "
    "else_branch = q () => (float[n, m] b) { b = Neg(x) }> "
    "z = Mul(y, s) w = ReduceMax<keepdims = 0>(x, zero) t = Add(s, w) }";

Model squeezed() {
  const Model model = Model::parse(std::string(kHead) + kSqueezed);
  EXPECT_FALSE(model.handle()->needs_values.empty());
  return model;
}

NamedTensors inputs_of(int64_t n, int64_t m) {
  return {{"x", ramp({n, m}, -3)}, {"s", ramp({m}, 1)}};
}

void expect_equal(const NamedTensors& got, const NamedTensors& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (const auto& [name, tensor] : wanted) {
    EXPECT_EQ(got.at(name).dims(), tensor.dims());
    const Comparison comparison = compare(name, got.at(name), tensor, {0, 0});
    EXPECT_TRUE(comparison.passed) << describe(comparison);
  }
}

size_t planned_steps(const Session& session) { return session.step_facts()[0].kernels.size(); }

TEST(RunSizes, EqualNodesOneByOne) {
  const Model model = squeezed();
  const Program program = compile(model);
  Session session(program);
  for (const int64_t n : {1, 3, 1, 2, 5, 7, 3, 1}) {
    for (const int64_t m : {4, 1, 6, 9}) {
      const NamedTensors inputs = inputs_of(n, m);
      const NamedTensors wanted = evaluated(model, inputs);
      expect_equal(session.run(inputs), wanted);
      expect_equal(Session(program).run(inputs), wanted);
    }
  }
}

TEST(RunSizes, ArePlannedAtTheFirstRun) {
  Session session(compile(squeezed()));
  session.run(inputs_of(1, 4));
  const size_t steps = planned_steps(session);
  EXPECT_GT(steps, 0u);
  session.run(inputs_of(1, 4));
  EXPECT_EQ(planned_steps(session), steps);
  session.run(inputs_of(2, 4));
  EXPECT_GT(planned_steps(session), steps);
}

// A dimension that decides nothing is open from the third size on.
TEST(RunSizes, ShareAPlanWhereTheyDecideNothing) {
  Session session(compile(squeezed()));
  for (int64_t m = 2; m < 5; ++m) session.run(inputs_of(1, m));
  const size_t steps = planned_steps(session);
  for (int64_t m = 5; m < 40; ++m) session.run(inputs_of(1, m));
  EXPECT_EQ(planned_steps(session), steps);
}

// Each number of rows could be another rank: none of their plans serves two.
TEST(RunSizes, ArePlannedInABoundedNumber) {
  const Model model = squeezed();
  Session session(compile(model));
  size_t steps = 0, grown = 0;
  for (int64_t n = 1; n < 40; ++n) {
    const NamedTensors inputs = inputs_of(n, 3);
    expect_equal(session.run(inputs), evaluated(model, inputs));
    if (planned_steps(session) > steps) ++grown;
    steps = planned_steps(session);
  }
  EXPECT_EQ(grown, 16u);
}

// Bounds of slices that other nodes compute: a plan serves all, whether an elementwise step, a
// reduction or a cascade takes in what reads the slice.
TEST(RunSizes, FollowFromValuesWithinAPlan) {
  constexpr const char* kBounds =
      "(float[16, 4] x, int64[5] starts, int64[5] ends, int64 i) => (y) { "
      "zero = Constant<value_ints = [0]>() a = Gather(starts, i) b = Gather(ends, i) "
      "from = Unsqueeze(a, zero) to = Unsqueeze(b, zero) s = Slice(x, from, to, zero) ";
  for (const char* end : {"y = Neg(s) }", "y = ReduceSum(s, zero) }", "y = Softmax<axis = 0>(s) }",
                          "t = Transpose(s) e = Softmax(t) y = MatMul(e, s) }"}) {
    SCOPED_TRACE(end);
    const Model model = Model::parse(std::string(kHead) + kBounds + end);
    EXPECT_TRUE(model.handle()->needs_values.empty());
    const auto program = compile(model).handle();
    ThreadPool pool(1);
    runtime::PlanRun plan(program, pool, false);
    Tensor starts(DType::Int64, {5}), ends(DType::Int64, {5}), i(DType::Int64, {});
    for (int64_t k = 0; k < 5; ++k) {
      starts.as<int64_t>()[k] = 3 * k;
      ends.as<int64_t>()[k] = 3 * k + 1 + k % 3;
    }
    for (int64_t k = 0; k < 5; ++k) {
      *i.as<int64_t>() = k;
      const Tensor x = ramp({16, 4}, -2);
      const std::vector<const Tensor*> inputs = {&x, &starts, &ends, &i};
      const std::vector<Tensor> outputs = plan.run(inputs, int64_t{1} << 30, nullptr, nullptr);
      const Tensor wanted =
          evaluated(model, {{"x", x}, {"starts", starts}, {"ends", ends}, {"i", i}}).at("y");
      const Comparison comparison = compare("y", outputs[0], wanted, {1e-5, 1e-6});
      EXPECT_TRUE(comparison.passed) << describe(comparison);
    }
  }
}

// A length that a reduction computes, as that of a speech is the sum of its durations: the plan has
// it in memory before it makes positions of it.
TEST(RunSizes, FollowFromReductionsWithinAPlan) {
  constexpr const char* kLength =
      "(float[1, 1, n] x) => (float[1, k] y, float[1, 1, n] d) { low = Constant<value_float = "
      "1.0>() "
      "one = Constant<value_ints = [1]>() axis = Constant<value_ints = [0]>() "
      "zero = Constant<value_int = 0>() "
      "step = Constant<value_int = 1>() e = Exp(x) d = Ceil(e) both = Constant<value_ints = [1, "
      "2]>() "
      "s = ReduceSum<keepdims = 0>(d, both) c = Max(s, low) lengths = Cast<to = 7>(c) ";
  for (const char* last : {"last = ReduceMax<keepdims = 0>(lengths) ",
                           "first = Constant<value_int = 0>() last = Gather(lengths, first) "}) {
    SCOPED_TRACE(last);
    const Model model = Model::parse(
        std::string(kHead) + kLength + last +
        "at = Range(zero, last, step) rows = Unsqueeze(lengths, one) columns = Unsqueeze(at, axis) "
        "inside = Less(columns, rows) y = Cast<to = 1>(inside) }");
    EXPECT_TRUE(model.handle()->needs_values.empty());
    const auto program = compile(model).handle();
    ThreadPool pool(1);
    runtime::PlanRun plan(program, pool, false);
    for (const int64_t n : {1, 4, 9}) {
      const Tensor x = ramp({1, 1, n}, -2);
      const std::vector<const Tensor*> inputs = {&x};
      const std::vector<Tensor> outputs = plan.run(inputs, int64_t{1} << 30, nullptr, nullptr);
      expect_equal({{"y", outputs[0]}, {"d", outputs[1]}}, evaluated(model, {{"x", x}}));
    }
  }
}

// So that equal inputs give equal bits, whatever sizes a session has seen between.
TEST(RunSizes, KeepTheirProgram) {
  const Model model = squeezed();
  const Program program = compile(model);
  const auto of = [&](int64_t m) {
    const std::vector<Tensor> inputs = ordered_inputs(*model.handle(), inputs_of(1, m));
    return program.handle()->by_sizes->of(std::vector<const Tensor*>{&inputs[0], &inputs[1]});
  };
  const auto first = of(9);
  for (const int64_t m : {3, 5, 7}) of(m);
  EXPECT_FALSE(of(8)->is_exact());
  EXPECT_EQ(of(9), first);
}

// Sizes, elements and indices beyond 64 bits.
TEST(RunSizes, BeyondTheirTypeNameTheNode) {
  constexpr int64_t kLarge = int64_t{1} << 40;
  for (const char* node : {"ConstantOfShape(s)", "Expand(x, s)", "Tile(x, s)"}) {
    const Model model = Model::parse(std::string(kHead) + "(float[1, 3, 1] x, int64[3] s) => (y) " +
                                     "{ y = " + node + " }");
    Session session(compile(model));
    const std::string op = std::string(node).substr(0, std::string(node).find('('));
    try {
      session.run({{"x", ramp({1, 3, 1}, 0)}, {"s", integers({3}, {kLarge, 3, kLarge})}});
      ADD_FAILURE() << node;
    } catch (const UserError& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find("overflows 64 bits"), std::string::npos) << message;
      EXPECT_NE(message.find(op), std::string::npos) << message;
    }
  }
}

TEST(RunSizes, CarryAState) {
  const Model model = squeezed();
  Session session(compile(model));
  NamedTensors inputs = inputs_of(1, 8), wanted = inputs;
  for (int step = 0; step < 20; ++step) {
    inputs["x"] = wanted["x"] = ramp({1 + step % 2, 8}, static_cast<float>(step % 5));
    const NamedTensors outputs = session.run(inputs), expected = evaluated(model, wanted);
    expect_equal(outputs, expected);
    inputs["s"] = outputs.at("t");
    wanted["s"] = expected.at("t");
  }
}

TEST(RunSizes, ShowStepsInside) {
  Session session(compile(squeezed()));
  session.profile(true);
  session.run(inputs_of(1, 4));
  ASSERT_EQ(session.step_times().size(), 1u);
  const std::vector<KernelTime>& inside = session.step_times()[0].kernels;
  ASSERT_FALSE(inside.empty());
  EXPECT_GE(session.step_times()[0].duration_us, inside[0].duration_us);
  EXPECT_EQ(planned_steps(session), inside.size());
}

TEST(RunSizes, RefuseInputsOfOtherTypes) {
  Session session(compile(squeezed()));
  const auto refused = [&](const NamedTensors& inputs, const std::string& part) {
    try {
      session.run(inputs);
      ADD_FAILURE() << part;
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  };
  for (int run = 0; run < 2; ++run) {
    NamedTensors inputs = inputs_of(1, 4);
    inputs.erase("s");
    refused(inputs, "\"s\" is missing");
    inputs["s"] = Tensor(DType::Int64, {4});
    refused(inputs, "input \"s\" is int64");
    inputs["s"] = ramp({4, 1}, 0);
    refused(inputs, "input \"s\" is float32[4,1]");
    inputs["s"] = ramp({5}, 0);
    refused(inputs, "[Mul]");
    inputs = inputs_of(1, 4);
    inputs["r"] = ramp({4}, 0);
    refused(inputs, "no input \"r\"");
    session.run(inputs_of(1, 4));
  }
}

// The first 0 of every row, of an empty row too; the maximum beside it has elements.
TEST(RunSizes, NoRankIsTaken) {
  const Model model = Model::parse(
      std::string(kHead) +
      "(float[n, m] x) => (float[n, 0] v, int64[n, 0] i, float[n] y) <int64[1] k = {0}, "
      "int64[1] a = {1}> { v, i = TopK(x, k) y = ReduceMax<keepdims = 0>(x, a) }");
  Session session(compile(model));
  for (const Dims& dims : {Dims{3, 4}, Dims{0, 4}, Dims{3, 0}}) {
    const NamedTensors got = session.run({{"x", ramp(dims, -3)}});
    EXPECT_EQ(got.at("v").dims(), (Dims{dims[0], 0}));
    EXPECT_EQ(got.at("i").dims(), (Dims{dims[0], 0}));
    EXPECT_EQ(got.at("y").dims(), (Dims{dims[0]}));
  }
}

}  // namespace
}  // namespace redfuser::testing
