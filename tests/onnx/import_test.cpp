// From files to graphs: real models, functions, expansions, constants, names.
#include "onnx/import/import.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "ops/op_def.h"
#include "ops/registry.h"
#include "support/proto_file.h"
#include "support/test_paths.h"

namespace redfuser {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(test_paths::models())) {
    if (fs::exists(entry.path() / "model.onnx")) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class RealModel : public testing::TestWithParam<std::string> {};

TEST_P(RealModel, ImportsToPrimitives) {
  const auto model =
      onnx::load_model(std::string(test_paths::models()) + "/" + GetParam() + "/model.onnx");
  ASSERT_FALSE(model->inputs.empty());
  ASSERT_EQ(model->outputs.size(), 1u);
  EXPECT_EQ(model->outputs[0].name, "out");
  EXPECT_EQ(model->outputs[0].dtype, DType::Float32);
  int written = 0;
  for (const auto& [op, count] : model->operator_counts) written += count;
  for (const ir::Node& node : model->graph.nodes) {
    ASSERT_NE(node.def, nullptr) << node.op;
    EXPECT_EQ(ops::find_op(node.domain, node.op, node.opset), node.def);
    EXPECT_GE(node.source, 0);
    EXPECT_LT(node.source, written);
    EXPECT_FALSE(node.name.empty());
    EXPECT_NE(node.op, "Constant");
  }
}

INSTANTIATE_TEST_SUITE_P(Models, RealModel, testing::ValuesIn(model_names()), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

std::multiset<std::string> ops_of(const ir::Graph& graph) {
  std::multiset<std::string> ops;
  for (const ir::Node& node : graph.nodes) ops.insert(node.op);
  return ops;
}

const ir::Value& output_of(const onnx::LoadedModel& model, int index = 0) {
  return model.graph.values[static_cast<size_t>(model.graph.outputs[static_cast<size_t>(index)])];
}

TEST(Import, ExpansionKeepsTheUsersNodeAndNames) {
  const ProtoFile file(R"(g (float[n, 8] x) => (float[n, 8] y) {
    a = Relu(x)
    y = Softmax<axis = -1>(a)
  })");
  const auto model = onnx::load_model(file.path());
  ASSERT_GT(model->graph.nodes.size(), 3u);
  for (size_t i = 1; i < model->graph.nodes.size(); ++i) {
    EXPECT_EQ(model->graph.nodes[i].name, "Softmax_1");
    EXPECT_EQ(model->graph.nodes[i].source, 1);
  }
  EXPECT_EQ(output_of(*model).name, "y");
  EXPECT_EQ(model->operator_counts.at("Softmax"), 1);
}

TEST(Import, FunctionsBindAttributesAndOptionalInputs) {
  const ProtoFile file(R"(g (float[n] x) => (float[n] y, float[n] z)
  { y = f.scale<by = 3>(x) z = f.scale(x, y) })",
                       R"(<domain: "f", opset_import: ["" : 20]> scale <by: int = 2> (p, q) => (r) {
    i = Constant<value_int: int = @by>()
    k = Cast<to = 1>(i)
    r = Mul(p, k)
  })");
  const auto model = onnx::load_model(file.path());
  std::vector<int64_t> factors;
  for (const ir::Value& value : model->graph.values) {
    if (value.is_constant() && value.dtype == DType::Int64) {
      factors.push_back(*value.constant.as<int64_t>());
    }
  }
  EXPECT_EQ(factors, (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(ops_of(model->graph).count("Mul"), 2u);
  EXPECT_EQ(model->operator_counts.at("f.scale"), 2);
}

TEST(Import, FunctionThatPassesItsInputOnKeepsTheOutputsName) {
  const ProtoFile file("g (float[n] x) => (float[n] y) { y = f.same(x) }",
                       R"(<domain: "f", opset_import: ["" : 20]> same (p) => (p) {})");
  const auto model = onnx::load_model(file.path());
  EXPECT_EQ(ops_of(model->graph), (std::multiset<std::string>{"Identity"}));
  EXPECT_EQ(output_of(*model).name, "y");
}

TEST(Import, SortsNodesAndDropsDeadOnes) {
  const ProtoFile file("g (float[n] x) => (float[n] y) { y = Neg(b) d = Exp(b) b = Abs(x) }");
  const auto model = onnx::load_model(file.path());
  ASSERT_EQ(model->graph.nodes.size(), 2u);
  EXPECT_EQ(model->graph.nodes[0].name, "Abs_2");
  EXPECT_EQ(model->graph.nodes[1].name, "Neg_0");
}

TEST(Import, OpenDimensionsAreSymbols) {
  const ProtoFile file("g (float[batch, ?, 0] x) => (float[a, b, c] y) { y = Neg(x) }");
  const auto model = onnx::load_model(file.path());
  ASSERT_EQ(model->outputs[0].dims.size(), 3u);
  EXPECT_EQ(model->outputs[0].dims[0].symbol, "batch");
  EXPECT_EQ(model->outputs[0].dims[1].symbol, "x.dim1");
  EXPECT_EQ(model->outputs[0].dims[2].size, 0);
}

TEST(Import, AnInputWithAnInitializerIsAConstant) {
  ProtoFile file("g (float[2] x, float[2] w) => (float[2] y) { y = Mul(x, w) }");
  ::onnx::TensorProto& tensor = *file.graph().add_initializer();
  tensor.set_name("w");
  tensor.set_data_type(::onnx::TensorProto::FLOAT);
  tensor.add_dims(2);
  tensor.add_float_data(1);
  tensor.add_float_data(2);
  const auto model = onnx::load_model(file.path());
  ASSERT_EQ(model->inputs.size(), 1u);
  EXPECT_EQ(model->inputs[0].name, "x");
}

TEST(Import, ConstantsOfEveryForm) {
  const ProtoFile file(R"(g () => (float a, int64 b, float[2] c, int64[3] d, float16[2] e) {
    a0 = Constant<value_float = 1.5>() a = Identity(a0)
    b0 = Constant<value_int = 7>() b = Identity(b0)
    c0 = Constant<value_floats = [1.0, 2.0]>() c = Identity(c0)
    d0 = Constant<value_ints = [1, 2, 3]>() d = Identity(d0)
    e0 = Constant<value = float16[2] {15360, 16384}>() e = Identity(e0)
  })");
  const auto model = onnx::load_model(file.path());
  std::map<std::string, const ir::Value*> values;
  for (const ir::Value& value : model->graph.values) values[value.name] = &value;
  EXPECT_EQ(*values.at("a0")->constant.as<float>(), 1.5f);
  EXPECT_EQ(*values.at("b0")->constant.as<int64_t>(), 7);
  EXPECT_TRUE(values.at("a0")->has_elements);
  EXPECT_EQ(values.at("c0")->constant.as<float>()[1], 2.0f);
  ASSERT_EQ(values.at("d0")->elements.size(), 3u);
  EXPECT_EQ(values.at("d0")->elements[2]->integer, 3);
  EXPECT_EQ(values.at("e0")->constant.dtype(), DType::Float16);
}

TEST(Import, TypedFieldsOfEveryDType) {
  using T = ::onnx::TensorProto;
  for (const auto dtype : {T::FLOAT, T::UINT8, T::INT8, T::UINT16, T::INT16, T::INT32, T::INT64,
                           T::BOOL, T::FLOAT16, T::DOUBLE, T::UINT32, T::UINT64, T::BFLOAT16}) {
    ProtoFile file("g () => (float[2] y) { y = Identity(w) }");
    file.graph().mutable_output(0)->mutable_type()->mutable_tensor_type()->set_elem_type(dtype);
    T& tensor = *file.graph().add_initializer();
    tensor.set_name("w");
    tensor.set_data_type(dtype);
    tensor.add_dims(2);
    for (int i = 0; i < 2; ++i) {
      if (dtype == T::FLOAT) tensor.add_float_data(1);
      if (dtype == T::DOUBLE) tensor.add_double_data(1);
      if (dtype == T::INT64) tensor.add_int64_data(1);
      if (dtype == T::UINT32 || dtype == T::UINT64) tensor.add_uint64_data(1);
    }
    if (tensor.float_data_size() + tensor.double_data_size() + tensor.int64_data_size() +
            tensor.uint64_data_size() ==
        0) {
      tensor.add_int32_data(1);
      tensor.add_int32_data(1);
    }
    const auto model = onnx::load_model(file.path());
    EXPECT_EQ(static_cast<int>(model->outputs[0].dtype), static_cast<int>(dtype));
    EXPECT_EQ(*static_cast<const uint8_t*>(model->graph.values[0].constant.data()) == 1,
              dtype != T::FLOAT && dtype != T::DOUBLE);
  }
}

TEST(Import, ReadsBytesLikeAFile) {
  ProtoFile file("g (float[n] x) => (float[n] y) { y = Exp(x) }");
  const Model model = Model::from_bytes(file.bytes(), "given");
  EXPECT_EQ(model.inputs()[0].dims[0].symbol, "n");
  EXPECT_EQ(model.operator_counts().at("Exp"), 1);
  try {
    Model::from_bytes(file.bytes().substr(1), "given");
    ADD_FAILURE() << "damaged bytes were read";
  } catch (const UserError& error) {
    EXPECT_EQ(std::string(error.what()).rfind("given: ", 0), 0u) << error.what();
  }
}

}  // namespace
}  // namespace redfuser
