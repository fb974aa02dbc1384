// Models, programs, their reports and written files.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "onnx/import/import.h"
#include "redfuser/compare.h"
#include "redfuser/export.h"
#include "redfuser/inputs.h"
#include "redfuser/io.h"
#include "redfuser/verify.h"
#include "runtime/program/compiled_program.h"
#include "support/text_model.h"

namespace redfuser {
namespace {

namespace fs = std::filesystem;

constexpr const char* kText =
    "g (float[batch, n] x, int64[1] k) => (float[batch, n] y) {"
    "  s = Softmax<axis = -1>(x)"
    "  f = Cast<to = 1>(k)"
    "  y = Mul(s, f)"
    "}";

std::string temporary(const std::string& name) {
  return (fs::path(testing::TempDir()) / ("redfuser_program_" + name)).string();
}

TEST(Model, DescribesItsFile) {
  const TextModel file(kText);
  const Model model = Model::load(file.path());
  ASSERT_EQ(model.inputs().size(), 2u);
  EXPECT_EQ(model.inputs()[0].name, "x");
  EXPECT_EQ(model.inputs()[0].dims[1].symbol, "n");
  EXPECT_EQ(model.inputs()[1].dtype, DType::Int64);
  EXPECT_EQ(model.inputs()[1].dims[0].size, 1);
  EXPECT_EQ(model.outputs()[0].name, "y");
  EXPECT_EQ(model.operator_counts(),
            (std::map<std::string, int>{{"Cast", 1}, {"Mul", 1}, {"Softmax", 1}}));
  EXPECT_THROW(Model::load("/no/such/file.onnx"), UserError);
}

// A pool that several threads read accepts no new expressions.
TEST(Program, LeavesItsModelAsItIs) {
  const TextModel file(kText);
  const Model model = Model::load(file.path());
  const size_t model_size = model.handle()->graph.pool->size();
  const Program program = compile(model), again = compile(model);
  EXPECT_EQ(program.text(), again.text());
  const size_t program_size = program.handle()->graph().pool->size();
  EXPECT_GT(program_size, model_size);
  Tensor x(DType::Float32, {3, 5}), k(DType::Int64, {1});
  for (int64_t i = 0; i < x.size(); ++i) x.as<float>()[i] = static_cast<float>(i);
  *k.as<int64_t>() = 2;
  const NamedTensors inputs = {{"x", x}, {"k", k}};
  Session(program).run(inputs);
  verify_steps(model, program, inputs);
  program.explain();
  to_dot(program);
  std::string bytes;
  save_to_bytes(model, &program, Emit::Standard, bytes);
  EXPECT_EQ(model.handle()->graph.pool->size(), model_size);
  EXPECT_EQ(program.handle()->graph().pool->size(), program_size);
}

// A step that grew with the chain would make planning quadratic.
TEST(Program, LongChainsBecomeStepsOfBoundedLength) {
  constexpr int kNodes = 2000;
  std::string text = "g (float[4] v0) => (float[4] v2000) {";
  for (int i = 0; i < kNodes; ++i) {
    text += fmt::format("v{} = {}(v{}) ", i + 1, i % 2 ? "Sin" : "Cos", i);
  }
  const TextModel file(text + "}");
  const Program program = compile(Model::load(file.path()));
  EXPECT_GE(program.steps().size(), kNodes / 64u);
  EXPECT_LE(program.steps().size(), kNodes / 32u);
}

TEST(Program, ExplainsItselfAsJson) {
  const TextModel file(kText);
  const Program program = compile(Model::load(file.path()));
  const nlohmann::json report = nlohmann::json::parse(program.explain());
  ASSERT_EQ(report["fused"].size(), 1u) << program.explain();
  const nlohmann::json& region = report["fused"][0];
  for (const char* key : {"id", "class", "nodes", "stages", "verified"}) {
    EXPECT_TRUE(region.contains(key)) << key;
  }
  for (const char* key : {"reduce", "form", "F", "G", "H", "rho"}) {
    EXPECT_TRUE(region["stages"][0].contains(key)) << key;
  }
  EXPECT_EQ(report["ops_before"]["Softmax"], 1);
  EXPECT_FALSE(report["ops_after"].empty());
}

TEST(RandomInputs, FollowOptions) {
  const TextModel file(kText);
  const Model model = Model::load(file.path());
  RandomOptions options;
  options.symbols = {{"n", 5}};
  options.ranges = {{"k", {3, 4}}};
  const NamedTensors inputs = random_inputs(model, options);
  EXPECT_EQ(inputs.at("x").dims(), (Dims{1, 5}));
  EXPECT_EQ(inputs.at("k").as<int64_t>()[0], 3);
  EXPECT_TRUE(compare("x", inputs.at("x"), random_inputs(model, options).at("x"), {0, 0}).passed);
  options.seed = 1;
  EXPECT_FALSE(compare("x", inputs.at("x"), random_inputs(model, options).at("x"), {0, 0}).passed);
  options.shapes = {{"x", {2, 6}}};
  EXPECT_THROW(random_inputs(model, options), UserError);
  EXPECT_THROW(random_inputs(model, {.symbols = {{"m", 5}}}), UserError);
  EXPECT_THROW(random_inputs(model, {.shapes = {{"z", {5}}}}), UserError);
}

TEST(DataSet, FollowsTheModelsOrder) {
  const TextModel file(kText);
  const Model model = Model::load(file.path());
  const std::string folder = temporary("data_set");
  fs::remove_all(folder);
  const NamedTensors inputs = random_inputs(model);
  save_data_set(folder, model, Role::Inputs, inputs);
  EXPECT_TRUE(fs::exists(folder + "/input_1.pb"));
  const NamedTensors loaded = load_tensors(folder, model, Role::Inputs);
  EXPECT_EQ(loaded.at("k").dtype(), DType::Int64);
  EXPECT_TRUE(compare("x", loaded.at("x"), inputs.at("x"), {0, 0}).passed);
  EXPECT_THROW(load_tensors(folder, model, Role::Outputs), UserError);
  fs::copy_file(folder + "/input_0.pb", folder + "/input_2.pb");
  EXPECT_THROW(load_tensors(folder, model, Role::Inputs), UserError);
  fs::remove_all(folder);
}

TEST(Save, WrittenModelsComputeTheSame) {
  const TextModel file(kText);
  const Model model = Model::load(file.path());
  const Program program = compile(model);
  const NamedTensors inputs = random_inputs(model, {.symbols = {{"batch", 3}, {"n", 17}}});
  const NamedTensors expected = Session(program).run(inputs);
  for (const Emit emit : {Emit::Function, Emit::Inline, Emit::Standard}) {
    const std::string path = temporary("saved.onnx");
    SaveOptions options;
    options.emit = emit;
    const SaveResult result = save(model, &program, options, path);
    EXPECT_EQ(result.operators_before.at("Softmax"), 1);
    const NamedTensors again = Session(compile(Model::load(path))).run(inputs);
    EXPECT_TRUE(compare("y", again.at("y"), expected.at("y")).passed);
    fs::remove(path);
  }
}

TEST(Picture, OutlinesFusedRegions) {
  const TextModel file(kText);
  const Program program = compile(Model::load(file.path()));
  const std::string text = to_dot(program);
  EXPECT_NE(text.find("subgraph cluster_"), std::string::npos);
  const std::string path = temporary("picture.dot");
  save_picture(program, path);
  std::ifstream dot(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(dot), {}), text);
  fs::remove(path);
}

}  // namespace
}  // namespace redfuser
