// Control flow that a run resolves: bodies as programs of their own, over several runs and sizes,
// against the same model evaluated node by node.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "onnx/import/import.h"
#include "redfuser/compare.h"
#include "redfuser/redfuser.h"
#include "support/control_flow.h"
#include "support/graph_builder.h"

namespace redfuser::testing {
namespace {

struct FlowCase {
  std::string name, text;
  std::vector<NamedTensors> runs;
};

std::ostream& operator<<(std::ostream& out, const FlowCase& c) { return out << c.name; }

Tensor truth(bool value) {
  Tensor tensor(DType::Bool, {});
  *tensor.as<bool>() = value;
  return tensor;
}

const std::string kIf =
    "If(c) <then_branch = t () => (float[n] a) { d = Add(x, w) a = Mul(d, x) }, "
    "else_branch = e () => (float[n] b) { b = Sub(w, x) }>";

// Both branches in turn, and three sets of sizes: the third makes sizes open.
std::vector<NamedTensors> condition_runs() {
  std::vector<NamedTensors> runs;
  for (const int64_t n : {3, 3, 5, 7, 2, 3}) {
    for (const bool c : {true, false, true}) {
      runs.push_back({{"x", ramp({n}, 1)}, {"w", ramp({n}, -2)}, {"c", truth(c)}});
    }
  }
  return runs;
}

std::vector<NamedTensors> count_runs(const std::vector<int64_t>& counts) {
  std::vector<NamedTensors> runs;
  for (const int64_t n : {2, 4, 6, 3}) {
    for (const int64_t t : counts) {
      runs.push_back({{"x", ramp({n}, 1)}, {"w", ramp({n}, 0.25f)}, {"t", integers({}, {t})}});
    }
  }
  return runs;
}

std::vector<FlowCase> cases() {
  const std::string if_head = "(float[n] x, float[n] w, bool c) => (float[n] y) ";
  const std::string loop_head = "(float[n] x, float[n] w, int64 t) => ";
  std::vector<FlowCase> cases{
      {"branches", if_head + "{ z = " + kIf + " y = Neg(z) }", condition_runs()},
      {"nested_branches",
       if_head +
           "{ s = ReduceSum<keepdims = 0>(x) z = Constant<value_float = 12.0>() "
           "big = Greater(s, z) y = If(big) <then_branch = o () => (float[n] p) { p = " +
           kIf + " }, else_branch = q () => (float[n] r) { r = Identity(x) }> }",
       condition_runs()},
      // The ranks of the branches differ, the declared one fits those that run.
      {"branches_by_size",
       "(float[n] x, float[n] w, bool c) => (float[k, n] y) { y = If(c) <then_branch = t () => "
       "(float[k, n] a) { a1 = Constant<value_ints = [0]>() a = Unsqueeze(x, a1) }, else_branch = "
       "e () => (float[k, n] b) { b1 = Constant<value_ints = [0]>() u = Unsqueeze(w, b1) "
       "b = Concat<axis = 0>(u, u) }> }",
       condition_runs()},
      {"loop_over_states",
       loop_head + "(float[n] y, float[k, n] o) { y, o = Loop <body = b (int64 i, bool go, "
                   "float[n] s) => (bool on, float[n] r, float[n] p) { on = Identity(go) "
                   "r = Add(s, w) p = Mul(s, x) }> (t, \"\", x) }",
       count_runs({0, 1, 3, 70, 200})},
      {"loop_that_ends_itself",
       loop_head + "(float[n] y) { y = Loop <body = b (int64 i, bool go, float[n] s) => "
                   "(bool on, float[n] r) { r = Add(s, w) m = ReduceMax<keepdims = 0>(r) "
                   "l = Constant<value_float = 40.0>() on = Less(m, l) }> (\"\", \"\", x) }",
       count_runs({1})},
      {"loop_that_grows",
       loop_head + "(float[m] y) { y = Loop <body = b (int64 i, bool go, float[k] s) => "
                   "(bool on, float[j] r) { on = Identity(go) r = Concat<axis = 0>(s, w) }> "
                   "(t, \"\", x) }",
       count_runs({0, 2, 9})},
      {"loop_of_branches_of_scans",
       loop_head + "(float[n] y) { y = Loop <body = b (int64 i, bool go, float[n] s) => "
                   "(bool on, float[n] r) { on = Identity(go) two = Constant<value_int = 2>() "
                   "zero = Constant<value_int = 0>() h = Mod(i, two) odd = Equal(h, zero) "
                   "r = If(odd) <then_branch = o () => (float[n] p) { "
                   "f, g = Scan<num_scan_inputs = 1, body = c (float a, float v) => "
                   "(float a2, float v2) { a2 = Add(a, v) v2 = Mul(a2, v) }> (z0, w) "
                   "p = Add(g, s) z0 = Constant<value_float = 0.5>() }, "
                   "else_branch = q () => (float[n] u) { u = Sub(s, x) }> }> (t, \"\", x) }",
       count_runs({1, 5, 66})},
      {"sequences_in_a_branch",
       "(float[n] x, float[n] w, bool c) => (float[m] y) { y = If(c) <then_branch = t () => "
       "(float[m] a) { q = SequenceConstruct(x, w, x) a = ConcatFromSequence<axis = 0>(q) }, "
       "else_branch = e () => (float[m] b) { b = Neg(x) }> }",
       condition_runs()},
      {"optionals_in_a_branch",
       "(float[n] x, float[n] w, bool c) => (float[n] y) { y = If(c) <then_branch = t () => "
       "(float[n] a) { q = Optional(w) a = OptionalGetElement(q) }, "
       "else_branch = e () => (float[n] b) { b = Neg(x) }> }",
       condition_runs()},
      // The carried list starts without an element, and its elements are of several sizes.
      {"loop_that_collects",
       loop_head +
           "(float[m] y, int64 k) { e = SequenceEmpty<dtype = 1>() q = Loop <body = b (int64 i, "
           "bool go, seq(float[a]) s) => (bool on, seq(float[a]) r) { on = Identity(go) "
           "f = CastLike(i, x) p = Add(x, f) h = Concat<axis = 0>(p, w) two = "
           "Constant<value_int = 2>() zero = Constant<value_int = 0>() md = Mod(i, two) odd = "
           "Equal(md, zero) v = If(odd) <then_branch = o () => (float[c] v1) { v1 = Identity(h) }, "
           "else_branch = q () => (float[d] v2) { v2 = Identity(p) }> "
           "r = SequenceInsert(s, v) }> (t, \"\", e) k = SequenceLength(q) "
           "q2 = SequenceInsert(q, w) y = ConcatFromSequence<axis = 0>(q2) }",
       count_runs({0, 1, 2, 70})},
      {"loop_over_a_queue",
       loop_head +
           "(float[n] y) { q = SequenceConstruct(x, w) r = Loop <body = b (int64 i, bool go, "
           "seq(float[a]) s) => (bool on, seq(float[a]) r) { on = Identity(go) zero = "
           "Constant<value_int = 0>() u = SequenceAt(s, zero) last = Constant<value_int = -1>() "
           "v = SequenceAt(s, last) z = Sub(u, v) s2 = SequenceErase(s, zero) "
           "one = Constant<value_int = 1>() r = SequenceInsert(s2, z, one) }> (t, \"\", q) "
           "end = Constant<value_int = -1>() y = SequenceAt(r, end) }",
       count_runs({0, 1, 5, 66})},
      {"loop_with_an_optional",
       loop_head +
           "(float[n] y) { e = Optional<type = float[n]>() o = Loop <body = b (int64 i, bool go, "
           "optional(float[n]) s) => (bool on, optional(float[n]) r) { on = Identity(go) "
           "has = OptionalHasElement(s) v = If(has) <then_branch = h () => (float[n] a) "
           "{ a0 = OptionalGetElement(s) a = Add(a0, w) }, else_branch = q () => (float[n] b) "
           "{ b = Neg(x) }> r = Optional(v) }> (t, \"\", e) y = OptionalGetElement(o) }",
       count_runs({1, 2, 70})},
      {"parts_of_a_split",
       "(float[n] x, float[n] w, bool c) => (float[n] y) { q = SplitToSequence<axis = 0>(x) "
       "zero = Constant<value_int = 0>() q2 = If(c) <then_branch = t () => (seq(float[k]) a) "
       "{ a = SequenceErase(q, zero) }, else_branch = e () => (seq(float[k]) b) "
       "{ b = SequenceInsert(q, w, zero) }> v = ConcatFromSequence<axis = 0>(q2) y = Neg(v) }",
       condition_runs()},
  };
  std::vector<NamedTensors> scans;
  for (const int64_t rows : {1, 5, 100, 200}) {
    scans.push_back({{"x", ramp({3, rows, 2}, 1)}, {"w", ramp({3, 2}, 0.5f)}});
  }
  for (const char* axes : {"scan_input_directions = [0]", "scan_input_directions = [1]",
                           "scan_output_directions = [1], scan_output_axes = [-1]"}) {
    cases.push_back(
        {fmt::format("scan_{}", cases.size()),
         "(float[3, rows, 2] x, float[3, 2] w) => (float[3, 2] y, float[a, b, c] z) { y, z = Scan "
         "<num_scan_inputs = 1, scan_input_axes = [1], " +
             std::string(axes) +
             ", body = b (float[3, 2] s, float[3, 2] v) => (float[3, 2] r, float[3, 2] p) "
             "{ r = Add(s, v) p = Mul(r, w) }> (w, x) }",
         scans});
  }
  return cases;
}

class ControlFlow : public ::testing::TestWithParam<FlowCase> {};

// Bit by bit, since the bodies are elementwise; a session and a fresh one per run.
TEST_P(ControlFlow, EqualsNodesOneByOne) {
  const Model model = Model::parse(kHead + GetParam().text);
  ASSERT_TRUE(model.handle()->needs_values.empty()) << model.handle()->needs_values;
  const Program program = compile(model);
  Session session(program);
  for (const NamedTensors& inputs : GetParam().runs) {
    const NamedTensors expected = evaluated(model, inputs);
    Session fresh(program);
    for (Session* each : {&session, &fresh}) {
      const NamedTensors got = each->run(inputs);
      ASSERT_EQ(got.size(), expected.size());
      for (const auto& [name, tensor] : expected) {
        const Comparison comparison = compare(name, got.at(name), tensor, {0, 0});
        EXPECT_TRUE(comparison.passed) << describe(comparison);
      }
    }
  }
}

TEST_P(ControlFlow, SessionsShareTheProgram) {
  const Model model = Model::parse(kHead + GetParam().text);
  const Program program = compile(model);
  const std::vector<NamedTensors>& runs = GetParam().runs;
  std::atomic<int> equal{0};
  std::vector<std::thread> threads;
  constexpr int kThreads = 4;
  for (int number = 0; number < kThreads; ++number) {
    threads.emplace_back([&, number] {
      Session session(program, {.threads = 2});
      for (size_t i = 0; i < runs.size(); ++i) {
        const NamedTensors& inputs = runs[(i + static_cast<size_t>(number)) % runs.size()];
        const NamedTensors got = session.run(inputs);
        for (const auto& [name, tensor] : evaluated(model, inputs)) {
          if (compare(name, got.at(name), tensor, {0, 0}).passed) ++equal;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(equal, kThreads * static_cast<int>(runs.size() * model.outputs().size()));
}

INSTANTIATE_TEST_SUITE_P(All, ControlFlow, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

// A branch that no run can compute is an error of the runs that take it.
TEST(ControlFlowErrors, OfTheBranchThatIsTaken) {
  const Model model = Model::parse(
      std::string(kHead) +
      "(float[2] x, float[3] w, bool c) => (float[n] y) { y = If(c) <then_branch = t () => "
      "(float[n] a) { a = Add(x, w) }, else_branch = e () => (float[n] b) { b = Neg(x) }> }");
  Session session(compile(model));
  const NamedTensors inputs{{"x", ramp({2}, 1)}, {"w", ramp({3}, 1)}};
  NamedTensors taken = inputs, left = inputs;
  taken["c"] = truth(true);
  left["c"] = truth(false);
  for (int run = 0; run < 2; ++run) {
    EXPECT_EQ(session.run(left).at("y").as<float>()[1], -1.5f);
    try {
      session.run(taken);
      ADD_FAILURE() << "sizes 2 and 3 were added";
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find("[Add]"), std::string::npos) << error.what();
    }
  }
}

// Two sizes that the import takes to be equal: the branch broadcasts.
TEST(ControlFlowSizes, MayBroadcastInABranch) {
  const Model model = Model::parse(
      std::string(kHead) +
      "(float[n] x, float[m] w, bool c) => (float[k] y) { z = If(c) <then_branch = t () => "
      "(float[i] a) { a = Add(x, w) }, else_branch = e () => (float[j] b) { b = Neg(x) }> "
      "y = Neg(z) }");
  Session session(compile(model));
  for (const int64_t n : {1, 4, 1}) {
    const Tensor y =
        session.run({{"x", ramp({n}, 1)}, {"w", ramp({4}, 1)}, {"c", truth(true)}}).at("y");
    EXPECT_EQ(y.dims(), Dims{4});
    EXPECT_EQ(y.as<float>()[3], n == 1 ? -3.5f : -5.0f);
  }
}

// What the steps inside cost and what computes them.
TEST(ControlFlowReports, ShowStepsInside) {
  const Model model = Model::parse(
      std::string(kHead) + "(float[n] x, float[n] w, bool c) => (float[n] y) { y = " + kIf + " }");
  Session session(compile(model));
  session.profile(true);
  session.run(condition_runs()[0]);
  ASSERT_EQ(session.step_times().size(), 1u);
  const std::vector<KernelTime>& inside = session.step_times()[0].kernels;
  ASSERT_FALSE(inside.empty());
  EXPECT_NE(inside[0].name.find("/Add_0"), std::string::npos) << inside[0].name;
  const StepFacts facts = session.step_facts()[0];
  EXPECT_EQ(facts.family, "control_flow");
  EXPECT_EQ(facts.kernels.size(), inside.size());
}

// A body's constant and an output that it returns twice serve every run. A session that has left
// its plan has facts of none of its steps.
TEST(ControlFlowOutputs, MayBeConstantsAndRepeat) {
  const Model model = Model::parse(
      std::string(kHead) +
      "(float[n] x, float[n] w, bool c) => (float[k] y, float[m] z) { y, z = If(c) <then_branch = "
      "t () => (float[2] a, float[2] b) { a = Constant<value_floats = [1.0, 2.0]>() "
      "b = Identity(a) }, else_branch = e () => (float[n] d, float[n] f) { d = Neg(x) "
      "f = Identity(d) }> }");
  const Program program = compile(model);
  Session session(program);
  for (const NamedTensors& inputs : condition_runs()) {
    const NamedTensors got = session.run(inputs);
    for (const auto& [name, tensor] : evaluated(model, inputs)) {
      EXPECT_TRUE(compare(name, got.at(name), tensor, {0, 0}).passed) << name;
    }
    EXPECT_EQ(session.step_facts().size(), program.steps().size());
  }
}

// An output that shows a part of an input is a copy.
TEST(ControlFlowOutputs, OutliveTheInputs) {
  const Model model = Model::parse(
      std::string(kHead) +
      "(float[rows, 2] x, float[2] s) => (float[2] y) { y = Scan <num_scan_inputs = 1, body = b "
      "(float[2] a, float[2] v) => (float[2] r) { r = Identity(v) }> (s, x) }");
  Session session(compile(model));
  Tensor x = ramp({100, 2}, 1);
  const Tensor y = session.run({{"x", x}, {"s", ramp({2}, 0)}}).at("y");
  const float before = y.as<float>()[0];
  x.as<float>()[198] = 12345;
  EXPECT_EQ(y.as<float>()[0], before);
}

}  // namespace
}  // namespace redfuser::testing
