// Runs that give an initializer of the model.
#include <gtest/gtest.h>

#include <array>

#include "redfuser/export.h"
#include "redfuser/io.h"
#include "redfuser/redfuser.h"
#include "support/text_model.h"
#include "support/tools_fixture.h"

namespace redfuser {
namespace {

// Two defaults: a factor, and the axes of a sum, which decide its rank.
constexpr const char* kGraph =
    "g (float[n, 2] x, float[2] w = {10, 100}, int64[1] axes = {1}) => (float[?] y) {"
    "  s = Mul(x, w)"
    "  y = ReduceSum<keepdims = 0>(s, axes)"
    "}";

std::string with_version(int ir_version) {
  return "<ir_version: " + std::to_string(ir_version) + ", opset_import: [\"\" : 20]> " + kGraph;
}

template <typename T>
Tensor tensor_of(DType dtype, Dims dims, const std::vector<T>& values) {
  Tensor tensor(dtype, std::move(dims));
  std::copy(values.begin(), values.end(), tensor.as<T>());
  return tensor;
}

Tensor floats(Dims dims, const std::vector<float>& values) {
  return tensor_of(DType::Float32, std::move(dims), values);
}

const Tensor kX = floats({2, 2}, {1, 2, 3, 4});

std::vector<float> values_of(const Tensor& tensor) {
  return {tensor.as<float>(), tensor.as<float>() + tensor.size()};
}

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

struct Given {
  NamedTensors overriding;
  std::vector<float> y;
};

// In this order in one session: with and without, and back.
const std::vector<Given>& rows() {
  static const std::vector<Given> kRows = {
      {{}, {210, 430}},
      {{{"w", floats({2}, {1, 1})}}, {3, 7}},
      {{}, {210, 430}},
      {{{"axes", tensor_of<int64_t>(DType::Int64, {1}, {0})}}, {40, 600}},
      {{{"axes", tensor_of<int64_t>(DType::Int64, {1}, {-1})}, {"w", floats({2}, {2, 0})}}, {2, 6}},
      {{{"w", floats({2}, {0, 1})}}, {2, 4}},
  };
  return kRows;
}

TEST(Overriding, OfARunHoldsForThatRun) {
  for (const char* device : {"cpu", "reference"}) {
    Session session(compile(Model::parse(with_version(4))), {.device = device});
    for (const Given& row : rows()) {
      if (device == std::string("reference") && row.overriding.count("axes") > 0) continue;
      NamedTensors inputs = row.overriding;
      inputs["x"] = kX;
      EXPECT_EQ(values_of(session.run(inputs).at("y")), row.y) << device;
    }
  }
}

TEST(Overriding, AModelTakesThemAsInputs) {
  const Model model = Model::parse(with_version(4));
  ASSERT_EQ(model.inputs().size(), 1u);
  ASSERT_EQ(model.overridable().size(), 2u);
  EXPECT_EQ(model.overridable()[0].name, "w");
  EXPECT_EQ(model.overridable()[1].name, "axes");
  for (const Given& row : rows()) {
    std::vector<std::string> names;
    NamedTensors inputs = row.overriding;
    for (const auto& [name, tensor] : inputs) names.push_back(name);
    inputs["x"] = kX;
    const Model taking = model.with_inputs(names);
    EXPECT_EQ(taking.inputs().size(), inputs.size());
    EXPECT_EQ(values_of(Session(compile(taking)).run(inputs).at("y")), row.y);
  }
}

TEST(Overriding, DefaultsAreConstants) {
  const Program program = compile(Model::parse(with_version(4)));
  EXPECT_EQ(program.steps().size(), 1u) << program.text();
}

TEST(Overriding, SettingsOfTheSessionHold) {
  Session session(compile(Model::parse(with_version(4))));
  int calls = 0;
  session.profile(true);
  session.keep_values(std::vector<std::string>{"y"});
  session.on_progress([&](int, int) { ++calls; });
  session.run({{"x", kX}, {"w", floats({2}, {1, 1})}});
  EXPECT_GT(calls, 0);
  EXPECT_FALSE(session.step_times().empty());
  EXPECT_EQ(session.kept_values().count("y"), 1u);
}

TEST(Overriding, SizesOfOutputsFollowThem) {
  Session session(compile(Model::parse(
      "<ir_version: 8, opset_import: [\"\" : 20]> g (float[n] x, float[1] w = {1}) => (float[k] y) "
      "{ y = Concat<axis = 0>(x, w) }")));
  EXPECT_EQ(session.output_dims({{"x", {3}}}).at("y"), (Dims{4}));
  EXPECT_EQ(session.output_dims({{"x", {3}}, {"w", {1}}}).at("y"), (Dims{4}));
  EXPECT_NE(error_of([&] {
              session.output_dims({{"x", {3}}, {"w", {5}}});
            }).find("\"w\""),
            std::string::npos);
}

TEST(Overriding, FaultsNameTheInput) {
  const Model model = Model::parse(with_version(4));
  Session session(compile(model));
  const Tensor wrong = floats({3}, {1, 2, 3});
  EXPECT_EQ(
      error_of([&] {
        session.run({{"x", kX}, {"w", wrong}});
      }),
      "input \"w\" dimension 0 is 3, but the model takes 2: it is float32[3], not float32[2]");
  EXPECT_EQ(error_of([&] { model.with_inputs({"x"}); }),
            "text: \"x\" is no input with an initializer that a run may give");
  std::string bytes;
  EXPECT_EQ(
      error_of([&] { save_to_bytes(model.with_inputs({"w"}), nullptr, Emit::Function, bytes); }),
      "text: a model with weights or inputs of the caller cannot be written");
}

// Older files list every initializer among the inputs.
TEST(Overriding, IsForNewerFiles) {
  const Model model = Model::parse(with_version(3));
  EXPECT_TRUE(model.overridable().empty());
  Session session(compile(model));
  const Tensor w = floats({2}, {1, 1});
  EXPECT_NE(error_of([&] {
              session.run({{"x", kX}, {"w", w}});
            }).find("has no input \"w\""),
            std::string::npos);
}

using OverridingTools = ToolsTest;

TEST_F(OverridingTools, FilesOfInputsMayHaveThem) {
  const TextModel model(kGraph);
  for (const Given& row : rows()) {
    NamedTensors inputs = row.overriding;
    inputs["x"] = kX;
    save_tensors(path("in.npz"), inputs);
    const Finished finished = run("redfuser-run", model.path() + " --inputs " + path("in.npz") +
                                                      " --outputs " + path("out.npz"));
    ASSERT_EQ(finished.code, 0) << finished.errors;
    EXPECT_EQ(values_of(load_tensors(path("out.npz")).at("y")), row.y);
  }
}

}  // namespace
}  // namespace redfuser
