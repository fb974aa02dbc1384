// Runs into the caller's memory, and models with the caller's weights.
#include <gtest/gtest.h>
#include <onnx/defs/parser.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "redfuser/compare.h"
#include "redfuser/export.h"
#include "redfuser/redfuser.h"

namespace redfuser {
namespace {

Tensor counted(Dims dims, float first = 0) {
  Tensor tensor(DType::Float32, std::move(dims));
  std::iota(tensor.as<float>(), tensor.as<float>() + tensor.size(), first);
  return tensor;
}

Tensor integers(Dims dims, const std::vector<int64_t>& values) {
  Tensor tensor(DType::Int64, std::move(dims));
  std::copy(values.begin(), values.end(), tensor.as<int64_t>());
  return tensor;
}

// The caller's memory shares nothing with a copy of the tensor.
Tensor own_copy(const Tensor& tensor) {
  Tensor copy(tensor.dtype(), tensor.dims());
  std::copy_n(tensor.as<char>(), tensor.bytes(), copy.as<char>());
  return copy;
}

Program compile_text(const std::string& graph, bool fuse = true) {
  return compile(Model::parse("<ir_version: 10, opset_import: [\"\" : 20]> " + graph),
                 {.fuse = fuse});
}

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

struct MemoryCase {
  const char* name;
  const char* graph;
  std::vector<std::pair<const char*, Dims>> inputs;
};

void PrintTo(const MemoryCase& test, std::ostream* os) { *os << test.name; }

class CallerMemory : public testing::TestWithParam<MemoryCase> {};

// Every output in the caller's memory, then one of them alone: the bits are those of a run without.
TEST_P(CallerMemory, HoldsTheResultsOfARun) {
  for (const bool fuse : {true, false}) {
    Session session(compile_text(GetParam().graph, fuse), {.threads = 2});
    NamedTensors inputs;
    for (const auto& [name, dims] : GetParam().inputs) inputs[name] = counted(dims, -3);
    const NamedTensors expected = session.run(inputs);
    NamedTensors memory;
    for (const auto& [name, tensor] : expected)
      memory[name] = Tensor(tensor.dtype(), tensor.dims());
    const auto check = [&](const NamedTensors& given) {
      const NamedTensors results = session.run(inputs, given);
      ASSERT_EQ(results.size(), expected.size());
      for (const auto& [name, tensor] : expected) {
        EXPECT_TRUE(compare(name, results.at(name), tensor, {0, 0}).passed) << name;
        const bool is_given = given.count(name) > 0;
        EXPECT_EQ(results.at(name).data() == memory.at(name).data(), is_given) << name;
      }
    };
    check(memory);
    for (const auto& [name, tensor] : memory) check({{name, tensor}});
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases, CallerMemory,
    testing::Values(
        MemoryCase{
            "softmax", "g (float[n, 8] x) => (float[n, 8] y) { y = Softmax(x) }", {{"x", {3, 8}}}},
        MemoryCase{"product_and_reduction",
                   "g (float[n, 8] x, float[8, 5] w) => (float[n, 5] y, float[n, 1] s) {"
                   " one = Constant<value_ints = [1]>()"
                   " y = MatMul(x, w) s = ReduceSum<keepdims = 1>(y, one) }",
                   {{"x", {3, 8}}, {"w", {8, 5}}}},
        MemoryCase{"alias",
                   "g (float[n, 8] x) => (float[m] y, float[n, 8] e) {"
                   " e = Exp(x) shape = Constant<value_ints = [-1]>() y = Reshape(e, shape) }",
                   {{"x", {3, 8}}}},
        MemoryCase{"an_input_and_a_constant",
                   "g (float[n] x) => (float[n] y, float[2] c, float[n] z) {"
                   " y = Identity(x) c = Constant<value_floats = [1.0, 2.0]>() z = Neg(x) }",
                   {{"x", {5}}}},
        MemoryCase{"sizes_of_data",
                   "g (float[n] x) => (int64[1, k] y, float[n] z) { y = NonZero(x) z = Neg(x) }",
                   {{"x", {7}}}},
        MemoryCase{
            "empty", "g (float[n, 4] x) => (float[n, 4] y) { y = Relu(x) }", {{"x", {0, 4}}}},
        MemoryCase{"a_branch",
                   "g (float[n] x) => (float[n] y) {"
                   " s = ReduceSum<keepdims = 0>(x) zero = Constant<value_float = 0.0>()"
                   " c = Less(s, zero)"
                   " y = If(c) <then_branch = t () => (float[n] a) { a = Exp(x) },"
                   " else_branch = e () => (float[n] b) { b = Neg(x) }> }",
                   {{"x", {5}}}}),
    [](const auto& info) { return std::string(info.param.name); });

// Values in the caller's memory do not count as the session's.
TEST(CallerMemory, IsWrittenByTheStepsThemselves) {
  Session session(
      compile_text("g (float[n, 8] x) => (float[m] y) {"
                   " s = Softmax(x) shape = Constant<value_ints = [-1]>()"
                   " y = Reshape(s, shape) }"));
  const NamedTensors inputs = {{"x", counted({2, 8})}};
  session.run(inputs);
  EXPECT_EQ(session.peak_bytes(), 64);
  session.run(inputs, {{"y", Tensor(DType::Float32, {16})}});
  EXPECT_EQ(session.peak_bytes(), 0);
}

constexpr const char* kScatter =
    "g (float[8, 4] past, int64[k, 1] at, float[k, 4] new) => (float[8, 4] present, float[8, 4] y) "
    "{"
    " present = ScatterND(past, at, new) y = Relu(present) }";

TEST(CallerMemory, ThePresentMayHaveTheMemoryOfThePast) {
  Session session(compile_text(kScatter), {.threads = 1});
  const Tensor past = counted({8, 4}, -16);
  NamedTensors inputs = {
      {"past", past}, {"at", integers({2, 1}, {1, 3})}, {"new", counted({2, 4}, 100)}};
  const NamedTensors expected = session.run(inputs);
  inputs["past"] = own_copy(past);
  const NamedTensors results = session.run(inputs, {{"present", inputs["past"]}});
  EXPECT_EQ(session.peak_bytes(), static_cast<int64_t>(expected.at("y").bytes()));
  EXPECT_EQ(results.at("present").data(), inputs["past"].data());
  for (const auto& [name, tensor] : expected) {
    EXPECT_TRUE(compare(name, results.at(name), tensor, {0, 0}).passed) << name;
  }
}

// y is read at other places than those written, and by a later step.
TEST(CallerMemory, AnInputThatIsReadElsewhereIsOverwrittenAtTheEnd) {
  for (const char* graph :
       {"g (float[6, 6] x) => (float[6, 6] y) { y = Transpose(x) }",
        "g (float[6, 6] x) => (float[6, 6] y, float[6, 6] z) { y = Exp(x) z = MatMul(x, y) }",
        "g (float[6, 6] x) => (float[6, 6] y, float[6, 6] z) { y = Neg(x) z = Identity(x) }"}) {
    Session session(compile_text(graph), {.threads = 1});
    const Tensor x = counted({6, 6}, -3);
    const NamedTensors expected = session.run({{"x", x}});
    const Tensor shared = own_copy(x);
    const NamedTensors results = session.run({{"x", shared}}, {{"y", shared}});
    for (const auto& [name, tensor] : expected) {
      EXPECT_TRUE(compare(name, results.at(name), tensor, {0, 0}).passed) << graph << name;
    }
  }
}

TEST(CallerMemory, FaultsNameTheOutput) {
  Session session(compile_text("g (float[n] x) => (float[n] result) { result = Exp(x) }"));
  const NamedTensors inputs = {{"x", counted({3})}};
  EXPECT_EQ(error_of([&] {
              session.run(inputs, {{"resutl", Tensor(DType::Float32, {3})}});
            }),
            "the model has no output \"resutl\"; did you mean \"result\"?");
  EXPECT_EQ(error_of([&] {
              session.run(inputs, {{"result", Tensor(DType::Float32, {4})}});
            }),
            "output \"result\" is float32[3], but the memory given for it is float32[4]");
  EXPECT_EQ(error_of([&] {
              session.run(inputs, {{"result", Tensor(DType::Int32, {3})}});
            }),
            "output \"result\" is float32[3], but the memory given for it is int32[3]");
}

// A product with a weight whose data the bytes do not hold.
std::string bytes_with_header() {
  ::onnx::ModelProto model;
  ::onnx::OnnxParser::Parse(model,
                            "<ir_version: 10, opset_import: [\"\" : 20]> "
                            "g (float[n, 2] x) => (float[n, 2] y) { y = MatMul(x, w) }");
  ::onnx::TensorProto& weight = *model.mutable_graph()->add_initializer();
  weight.set_name("w");
  weight.set_data_type(::onnx::TensorProto::FLOAT);
  weight.add_dims(2);
  weight.add_dims(2);
  return model.SerializeAsString();
}

TEST(CallerWeights, AreReadWhereTheyAre) {
  const Tensor weight = counted({2, 2}, 1);
  const Model model = Model::from_bytes(bytes_with_header(), "model", {.weights = {{"w", weight}}});
  const Tensor y = Session(compile(model)).run({{"x", counted({1, 2}, 1)}}).at("y");
  EXPECT_FLOAT_EQ(y.as<float>()[0], 1 * 1 + 2 * 3);
  EXPECT_FLOAT_EQ(y.as<float>()[1], 1 * 2 + 2 * 4);
  std::string bytes;
  EXPECT_EQ(error_of([&] { save_to_bytes(model, nullptr, Emit::Function, bytes); }),
            "model: a model with weights or inputs of the caller cannot be written");
}

TEST(CallerWeights, FaultsNameTheInitializer) {
  const auto load = [](const NamedTensors& weights) {
    return error_of([&] { Model::from_bytes(bytes_with_header(), "model", {.weights = weights}); });
  };
  EXPECT_EQ(load({{"v", counted({2, 2})}}),
            "model: a weight is given for \"v\", which is not an initializer");
  EXPECT_EQ(load({{"w", counted({4})}}),
            "model: the weight given for \"w\" is float32[4], but the initializer is float32[2,2]");
  EXPECT_NE(load({}), "no error");
}

}  // namespace
}  // namespace redfuser
