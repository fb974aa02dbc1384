// Control flow, sequences and strings: planned where the graph decides them, else evaluated.
#include <gtest/gtest.h>

#include "onnx/import/import.h"
#include "redfuser/redfuser.h"
#include "support/graph_builder.h"
#include "support/proto_file.h"

namespace redfuser::testing {
namespace {

constexpr const char* kHead = "<ir_version: 10, opset_import: [\"\" : 21]> g ";

struct ControlCase {
  std::string name, text;
  NamedTensors inputs;
  std::vector<float> y;
  bool planned;  // false: evaluated node by node
};

std::ostream& operator<<(std::ostream& out, const ControlCase& c) { return out << c.name; }

Tensor truth(bool value) {
  Tensor tensor(DType::Bool, {});
  *tensor.as<bool>() = value;
  return tensor;
}

Tensor whole(int64_t value) {
  Tensor tensor(DType::Int64, {});
  *tensor.as<int64_t>() = value;
  return tensor;
}

constexpr const char* kBranches =
    "If(c) <then_branch = t () => (float[n] a) { a = Add(x, x) }, "
    "else_branch = e () => (float[n] b) { b = Neg(x) }>";

std::vector<ControlCase> cases() {
  const Tensor x = floats({2}, {1, 2});
  const std::string doubling =
      "body = b (int64 i, bool go, float[n] s) => (bool on, float[n] r, float[n] o) "
      "{ on = Identity(go) r = Add(s, s) o = Identity(s) }";
  return {
      {"if_constant",
       "(float[n] x) => (float[n] y) { c = Constant<value = bool {1}>() y = " +
           std::string(kBranches) + " }",
       {{"x", x}},
       {2, 4},
       true},
      {"if_input_true",
       "(float[n] x, bool c) => (float[n] y) { y = " + std::string(kBranches) + " }",
       {{"x", x}, {"c", truth(true)}},
       {2, 4},
       true},
      {"if_input_false",
       "(float[n] x, bool c) => (float[n] y) { y = " + std::string(kBranches) + " }",
       {{"x", x}, {"c", truth(false)}},
       {-1, -2},
       true},
      {"if_nested",
       "(float[n] x, bool c) => (float[n] y) { y = If(c) <then_branch = t () => (float[n] a) { a "
       "= " +
           std::string(kBranches) + " }, else_branch = e () => (float[n] b) { b = Neg(x) }> }",
       {{"x", x}, {"c", truth(true)}},
       {2, 4},
       true},
      {"loop_unrolled",
       "(float[n] x) => (float[n] y) { t = Constant<value_int = 3>() y, o = Loop <" + doubling +
           "> (t, \"\", x) }",
       {{"x", x}},
       {8, 16},
       true},
      {"loop_of_input",
       "(float[n] x, int64 t) => (float[n] y) { y, o = Loop <" + doubling + "> (t, \"\", x) }",
       {{"x", x}, {"t", whole(4)}},
       {16, 32},
       true},
      {"loop_never",
       "(float[n] x, int64 t) => (float[n] y) { y, o = Loop <" + doubling + "> (t, \"\", x) }",
       {{"x", x}, {"t", whole(0)}},
       {1, 2},
       true},
      {"loop_stacks",
       "(float[n] x, int64 t) => (float[k, n] y) { z, y = Loop <" + doubling + "> (t, \"\", x) }",
       {{"x", x}, {"t", whole(3)}},
       {1, 2, 2, 4, 4, 8},
       true},
      {"loop_long",
       "(float[n] x, int64 t) => (float[n] y) { y = Loop <body = b (int64 i, bool go, float[n] s) "
       "=> (bool on, float[n] r) { on = Identity(go) one = Constant<value_float = 1.0>() "
       "r = Add(s, one) }> (t, \"\", x) }",
       {{"x", x}, {"t", whole(2000)}},
       {2001, 2002},
       true},
      {"scan_sums",
       "(float[4, n] x, float[n] s) => (float[n] y) { y, z = Scan <num_scan_inputs = 1, "
       "body = b (float[n] a, float[n] r) => (float[n] c, float[n] d) "
       "{ c = Add(a, r) d = Identity(c) }> (s, x) }",
       {{"x", floats({4, 1}, {1, 2, 3, 4})}, {"s", floats({1}, {10})}},
       {20},
       true},
      {"sequence",
       "(float[n] x) => (float[m] y) { z = Neg(x) q = SequenceConstruct(x, z) "
       "y = ConcatFromSequence<axis = 0>(q) }",
       {{"x", x}},
       {1, 2, -1, -2},
       true},
      {"axes_of_input",
       "(float[2, 2] x, int64[1] a) => (float[n] y) { y = ReduceSum<keepdims = 0>(x, a) }",
       {{"x", floats({2, 2}, {1, 2, 3, 4})}, {"a", integers({1}, {0})}},
       {4, 6},
       false},
  };
}

class Control : public ::testing::TestWithParam<ControlCase> {};

TEST_P(Control, Runs) {
  const ControlCase& test = GetParam();
  const Model model = Model::parse(kHead + test.text);
  EXPECT_EQ(model.handle()->needs_values.empty(), test.planned) << model.handle()->needs_values;
  Session session(compile(model));
  for (int run = 0; run < 2; ++run) {
    const Tensor y = session.run(test.inputs).at("y");
    ASSERT_EQ(y.size(), static_cast<int64_t>(test.y.size()));
    for (size_t i = 0; i < test.y.size(); ++i) EXPECT_EQ(y.as<float>()[i], test.y[i]) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Control, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

std::string error_of(const std::string& text, const NamedTensors& inputs) {
  try {
    const Model model = Model::parse(kHead + text);
    Session session(compile(model));
    session.run(inputs);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(ControlErrors, EndlessLoopsEnd) {
  const std::string text =
      "(float x, bool c) => (float y) { y = Loop <body = b (int64 i, bool go, float s) "
      "=> (bool go, float s) { }> (\"\", c, x) }";
  const NamedTensors inputs{{"x", floats({}, {1})}, {"c", truth(true)}};
  EXPECT_NE(error_of(text, inputs).find("iterations compute nothing"), std::string::npos);
}

TEST(ControlErrors, DeepNestingIsRefused) {
  std::string body = "y = Neg(x)";
  for (int depth = 0; depth < 80; ++depth) {
    body = "c = Constant<value = bool {1}>() y = If(c) <then_branch = t () => (float y) { " + body +
           " }, else_branch = e () => (float z) { z = Neg(x) }>";
  }
  EXPECT_FALSE(error_of("(float x) => (float y) { " + body + " }", {}).empty());
}

// Messages for a condition or a count of a wrong form, whether the plan or only the run has its
// value.
TEST(ControlErrors, ConditionsAndCountsAreOneElement) {
  const std::string branches(kBranches);
  const std::string body =
      "<body = b (int64 i, bool go, float[n] s) => (bool on, float[n] r) "
      "{ on = Identity(go) r = Add(s, s) }>";
  const Tensor three = make_tensor<int64_t>(DType::Bool, {3}, {1, 0, 1});
  const struct {
    std::string text;
    NamedTensors inputs;
    std::string part;
  } rows[] = {
      {"(float[n] x, bool[3] c) => (float[n] y) { y = " + branches + " }",
       {{"c", three}},
       "the condition must have one element; \"c\" has 3"},
      {"(float[n] x, bool[m] c) => (float[n] y) { y = " + branches + " }",
       {{"c", three}},
       "the condition must have one element; \"c\" has 3"},
      {"(float[n] x) => (float[n] y) { c = Constant<value = bool[3] {1, 0, 1}>() y = " + branches +
           " }",
       {},
       "the condition must have one element; \"c\" has 3"},
      {"(float[n] x, float c) => (float[n] y) { y = " + branches + " }",
       {{"c", floats({}, {1})}},
       "its input 0 is of type float32"},
      {"(float[n] x, int64[2] t) => (float[n] y) { y = Loop " + body + " (t, \"\", x) }",
       {{"t", integers({2}, {1, 2})}},
       "the trip count must have one element; \"t\" has 2"},
      {"(float[n] x, bool[3] c) => (float[n] y) { y = Loop " + body + " (\"\", c, x) }",
       {{"c", three}},
       "the condition must have one element; \"c\" has 3"},
  };
  for (const auto& row : rows) {
    NamedTensors inputs = row.inputs;
    inputs["x"] = floats({2}, {1, 2});
    const std::string message = error_of(row.text, inputs);
    EXPECT_NE(message.find(row.part), std::string::npos) << message;
  }
}

// Files, so that protobuf reads them: it has a limit of its own.
TEST(ControlErrors, NestingRunsToItsLimit) {
  for (const int depth : {50, 60, 66, 200}) {
    std::string body = "y = Neg(x)";
    for (int d = 0; d < depth; ++d) {
      body = "c = Constant<value = bool {1}>() y = If(c) <then_branch = t () => (float y) { " +
             body + " }, else_branch = e () => (float z) { z = Neg(x) }>";
    }
    const ProtoFile file("g (float x) => (float y) { " + body + " }");
    std::string message;
    try {
      Session session(compile(Model::load(file.path())));
      EXPECT_EQ(*session.run({{"x", floats({}, {2})}}).at("y").as<float>(), -2);
    } catch (const UserError& error) {
      message = error.what();
    }
    EXPECT_EQ(message.empty(), depth <= 64) << depth << ": " << message;
    EXPECT_EQ(message.find("nest more than") != std::string::npos, depth > 64) << message;
  }
}

TEST(ControlErrors, InputsAreChecked) {
  const std::string text =
      "(float[2] x, bool c) => (float[2] y) { y = If(c) <then_branch = t () => (float[2] a) "
      "{ a = Neg(x) }, else_branch = e () => (float[2] b) { b = Abs(x) }> }";
  EXPECT_NE(error_of(text, {{"x", floats({3}, {1, 2, 3})}, {"c", truth(true)}}).find("\"x\""),
            std::string::npos);
  EXPECT_NE(error_of(text, {{"c", truth(true)}}).find("missing"), std::string::npos);
  EXPECT_NE(error_of(text, {{"x", integers({2}, {1, 2})}, {"c", truth(true)}}).find("int64"),
            std::string::npos);
}

TEST(Strings, AreComparedAndJoined) {
  const Model model =
      Model::parse(std::string(kHead) +
                   "(string[n] a, string[n] b) => (bool[n] same, string[n] y) "
                   "{ same = Equal(a, b) j = StringConcat(a, b) y = Where(same, a, j) }");
  Session session(compile(model));
  const NamedTensors outputs = session.run(
      {{"a", Tensor::strings({2}, {"x", "long text"})}, {"b", Tensor::strings({2}, {"x", "!"})}});
  EXPECT_TRUE(outputs.at("same").as<bool>()[0]);
  EXPECT_FALSE(outputs.at("same").as<bool>()[1]);
  EXPECT_EQ(outputs.at("y").text(0), "x");
  EXPECT_EQ(outputs.at("y").text(1), "long text!");
}

}  // namespace
}  // namespace redfuser::testing
