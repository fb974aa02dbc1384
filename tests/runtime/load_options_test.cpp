// What a caller gives in place of what a file has (LoadOptions).
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "redfuser/export.h"
#include "redfuser/redfuser.h"
#include "support/proto_file.h"

namespace redfuser {
namespace {

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

// y = x * w + b, w and b in the file "weights" that is not there.
struct External : ProtoFile {
  External() : ProtoFile("g (float[n, 2] x) => (float[n, 2] y) { z = Mul(x, w) y = Add(z, b) }") {
    add("w", 0);
    add("b", 8);
  }

  void add(const char* name, int offset) {
    ::onnx::TensorProto& tensor = *graph().add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(::onnx::TensorProto::FLOAT);
    tensor.add_dims(2);
    tensor.set_data_location(::onnx::TensorProto::EXTERNAL);
    const std::pair<const char*, std::string> entries[] = {
        {"location", "weights"}, {"offset", std::to_string(offset)}, {"length", "8"}};
    for (const auto& [key, value] : entries) {
      auto& entry = *tensor.add_external_data();
      entry.set_key(key);
      entry.set_value(value);
    }
  }
};

Tensor floats(const std::vector<float>& values) {
  Tensor tensor(DType::Float32, {static_cast<int64_t>(values.size())});
  std::memcpy(tensor.mutable_data(), values.data(), tensor.bytes());
  return tensor;
}

std::vector<float> run(const Model& model) {
  const Tensor x = floats({1, 10}).reshaped({1, 2});
  const Tensor y = Session(compile(model)).run({{"x", x}}).at("y");
  return {y.as<float>(), y.as<float>() + y.size()};
}

TEST(LoadOptions, WeightsAndFilesTakeThePlaceOfExternalData) {
  const External file;
  const Tensor w = floats({2, 3}), b = floats({4, 5}), both = floats({2, 3, 4, 5});
  const LoadOptions rows[] = {
      {.weights = {{"w", w}, {"b", b}}},
      {.files = {{"weights", both}}},
      {.weights = {{"b", b}}, .files = {{"weights", floats({2, 3, 0, 0})}}}};
  for (const LoadOptions& options : rows) {
    EXPECT_EQ(run(Model::load(file.path(), options)), (std::vector<float>{6, 35}));
    EXPECT_EQ(run(Model::from_bytes(file.bytes(), "m", options)), (std::vector<float>{6, 35}));
  }
}

TEST(LoadOptions, FaultsNameTheInitializer) {
  const External file;
  const auto load = [&](const LoadOptions& options) {
    return error_of([&] { Model::from_bytes(file.bytes(), "m", options); });
  };
  const Tensor w = floats({2, 3});
  EXPECT_EQ(load({.weights = {{"v", w}}}),
            "m: a weight is given for \"v\", which is not an initializer");
  EXPECT_EQ(load({.weights = {{"w", floats({1})}, {"b", w}}}),
            "m: the weight given for \"w\" is float32[1], but the initializer is float32[2]");
  EXPECT_EQ(load({.weights = {{"w", Tensor()}}}), "m: the weight given for \"w\" is empty");
  EXPECT_NE(load({.weights = {{"w", w}}}).find("external data file \"weights\""),
            std::string::npos);
  EXPECT_EQ(load({.files = {{"others", w}}}),
            "m: a file is given for \"others\", where no initializer has its data");
  EXPECT_EQ(load({.files = {{"weights", floats({2, 3, 4})}}}),
            "m: tensor \"b\": bytes 8+8 lie outside \"weights\", which has 12");
  std::string bytes;
  const Model model = Model::from_bytes(file.bytes(), "m", {.weights = {{"w", w}, {"b", w}}});
  EXPECT_EQ(error_of([&] { save_to_bytes(model, nullptr, Emit::Function, bytes); }),
            "m: a model with weights or inputs of the caller cannot be written");
}

TEST(LoadOptions, SizesCloseOpenDimensions) {
  ProtoFile file("g (float[n, k, m] x, float[n] z) => (float[n, k, m] y) { y = Neg(x) }");
  auto& shape = *file.graph().mutable_input(0)->mutable_type()->mutable_tensor_type();
  shape.mutable_shape()->mutable_dim(1)->set_denotation("DATA_CHANNEL");
  const Model model = Model::from_bytes(
      file.bytes(), "m",
      {.sizes = {{"n", 3}, {"other", 5}}, .denoted_sizes = {{"DATA_CHANNEL", 4}, {"", 9}}});
  for (const ValueInfo& info : {model.inputs()[0], model.outputs()[0]}) {
    EXPECT_EQ(info.dims[0].size, 3);
    EXPECT_EQ(info.dims[1].size, 4);
    EXPECT_EQ(info.dims[2].size, -1);
    EXPECT_EQ(info.dims[2].symbol, "m");
  }
  EXPECT_EQ(model.inputs()[1].dims[0].size, 3);
  EXPECT_EQ(error_of([&] {
              Model::from_bytes(file.bytes(), "m", {.sizes = {{"n", -1}}});
            }),
            "m: the size given for \"n\" is -1");
  std::string bytes;
  save_to_bytes(model, nullptr, Emit::Inline, bytes);
  EXPECT_EQ(Model::from_bytes(bytes).inputs()[0].dims[1].size, 4);
}

// Dimensions of the inputs x and z, and of y, by the names that the file has for them.
struct Named {
  const char* graph;
  std::vector<std::string> x, y;
};

TEST(LoadOptions, DimensionsKeepTheNamesOfTheFile) {
  const Named rows[] = {
      {"g (float[?, 3] x) => (float[?, 3] y) { y = Exp(x) }", {"", ""}, {"", ""}},
      {"g (float[n, 3] x) => (float[?, 3] y) { y = Exp(x) }", {"n", ""}, {"n", ""}},
      {"g (float[n, 3] x) => (float[m, 3] y) { y = Exp(x) }", {"n", ""}, {"m", ""}},
      {"g (float[n, ?] x) => (float[k, ?] y) { y = Concat<axis = 1>(x, x) }", {"n", ""}, {"k", ""}},
      {"g (float[n, m] x) => (float[?, ?] y) { y = Concat<axis = 0>(x, x) }",
       {"n", "m"},
       {"", "m"}},
  };
  const auto names = [](const ValueInfo& info) {
    std::vector<std::string> found;
    for (const ValueInfo::Dimension& dim : info.dims) found.push_back(dim.declared);
    return found;
  };
  for (const Named& row : rows) {
    const Model model = Model::from_bytes(ProtoFile(row.graph).bytes());
    EXPECT_EQ(names(model.inputs()[0]), row.x) << row.graph;
    EXPECT_EQ(names(model.outputs()[0]), row.y) << row.graph;
  }
}

}  // namespace
}  // namespace redfuser
