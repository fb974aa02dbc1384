// Files that are written as they are, and nodes that stay for their readers.
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <fstream>

#include "redfuser/export.h"
#include "support/proto_file.h"

namespace redfuser {
namespace {

using namespace std::string_literals;

::onnx::ModelProto parse(const std::string& path) {
  ::onnx::ModelProto model;
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(model.ParseFromIstream(&file));
  return model;
}

std::vector<std::string> operators(const ::onnx::ModelProto& model) {
  std::vector<std::string> names;
  for (const auto& node : model.graph().node()) names.push_back(node.op_type());
  return names;
}

constexpr Emit kForms[] = {Emit::Function, Emit::Inline, Emit::Standard};

// Writes the model as it is in every form.
void expect_kept(const ProtoFile& file, const std::string& reason) {
  const std::string out = file.beside("out.onnx");
  const Model model = Model::load_to_save(file.path());
  for (const Emit emit : kForms) {
    SaveOptions options;
    options.emit = emit;
    const SaveResult result = save(model, nullptr, options, out);
    EXPECT_NE(result.kept_because.find(reason), std::string::npos) << result.kept_because;
    EXPECT_EQ(result.operators_before, result.operators_after);
    ::onnx::ModelProto before = parse(file.path()), after = parse(out);
    EXPECT_EQ(before.graph().initializer_size(), after.graph().initializer_size());
    before.mutable_graph()->clear_initializer();
    after.mutable_graph()->clear_initializer();
    EXPECT_EQ(before.graph().SerializeAsString(), after.graph().SerializeAsString());
    std::string bytes;
    EXPECT_EQ(save_to_bytes(model, nullptr, emit, bytes).kept_because, result.kept_because);
    EXPECT_FALSE(bytes.empty());
  }
}

TEST(Save, TripCountsOfARunAreKept) {
  expect_kept(ProtoFile(R"(g (float[n] x, int64 m, bool c) => (float[n] y) <float[1] w = {2}> {
    z = Mul(x, w)
    y = Loop(m, c, z) <body = b (int64 i, bool d, float[n] s) => (bool e, float[n] t) {
      e = Identity(d)
      t = Add(s, s)
    }>
  })"),
              "trip count");
}

TEST(Save, OperatorsOfOthersAreKept) {
  const ProtoFile file("g (float[n] x) => (float[n] y) { z = f.Thing(x) y = Relu(z) }");
  EXPECT_THROW(Model::load(file.path()), UserError);
  expect_kept(file, "f.Thing");
}

TEST(Save, FunctionsOfKeptModelsAreInlined) {
  const ProtoFile file(
      R"(g (float[n] x, int64 m, bool c) => (float[n] y) {
    z = f.Twice(x)
    y = Loop(m, c, z) <body = b (int64 i, bool d, float[n] s) => (bool e, float[n] t) {
      e = Identity(d)
      t = f.Twice(s)
    }>
  })",
      R"(<domain: "f", opset_import: ["" : 20]> Twice (p) => (r) { r = Add(p, p) })");
  const Model model = Model::load_to_save(file.path());
  for (const Emit emit : kForms) {
    const std::string out = file.beside("out.onnx");
    SaveOptions options;
    options.emit = emit;
    EXPECT_NE(save(model, nullptr, options, out).kept_because, "");
    const ::onnx::ModelProto written = parse(out);
    const bool inlined = emit != Emit::Function;
    EXPECT_EQ(written.functions_size(), inlined ? 0 : 1);
    EXPECT_EQ(operators(written).front(), inlined ? "Add" : "Twice");
    const auto& body = written.graph().node(1).attribute(0).g();
    EXPECT_EQ(body.node(1).op_type(), inlined ? "Add" : "Twice");
    Model::load(out);
  }
}

TEST(Save, TensorsOfSubgraphsBesideTheFileAreEmbedded) {
  ProtoFile file(R"(g (float[2] x, int64 m, bool c) => (float[2] y) {
    y = Loop(m, c, x) <body = b (int64 i, bool d, float[2] s) => (bool e, float[2] t)
    <float[2] w = {1, 2}> {
      e = Identity(d)
      t = Add(s, w)
    }>
  })");
  auto& tensor =
      *file.graph().mutable_node(0)->mutable_attribute(0)->mutable_g()->mutable_initializer(0);
  const std::string values = "\0\0\x80?\0\0\0@"s;
  tensor.clear_float_data();
  tensor.set_data_location(::onnx::TensorProto::EXTERNAL);
  auto& entry = *tensor.add_external_data();
  entry.set_key("location");
  entry.set_value("w.bin");
  file.write("w.bin", values);
  for (const Emit emit : kForms) {
    std::string bytes;
    save_to_bytes(Model::load(file.path()), nullptr, emit, bytes);
    ::onnx::ModelProto written;
    ASSERT_TRUE(written.ParseFromString(bytes));
    const auto& body = written.graph().node(0).attribute(0).g();
    ASSERT_EQ(body.initializer_size(), 1);
    EXPECT_EQ(body.initializer(0).data_location(), ::onnx::TensorProto::DEFAULT);
    EXPECT_EQ(body.initializer(0).raw_data(), values);
    EXPECT_EQ(body.initializer(0).name(), "w");
  }
}

TEST(Save, OperatorsThatOthersHaveInOnnxsDomain) {
  const ProtoFile file(R"(g (float[n, 4] x) => (float[n, 4] y) <float[4] s = {1, 2, 3, 4}> {
    a = Exp(x)
    y = SimplifiedLayerNormalization(a, s)
  })");
  for (const bool fuse : {false, true}) {
    const Model model = Model::load(file.path());
    CompileOptions options;
    options.fuse = fuse;
    const Program program = compile(model, options);
    const std::string out = file.beside("out.onnx");
    EXPECT_EQ(save(model, &program, {}, out).kept_because, "");
    const ::onnx::ModelProto written = parse(out);
    const auto& nodes = written.graph().node();
    ASSERT_EQ(nodes.size(), 2);
    EXPECT_EQ(nodes[1].op_type(), "SimplifiedLayerNormalization");
    EXPECT_EQ(nodes[1].domain(), "");
    EXPECT_EQ(written.opset_import_size(), parse(file.path()).opset_import_size() + (fuse ? 1 : 0));
    Model::load(out);
  }
}

TEST(Save, DequantisedConstantsStayWithTheirReaders) {
  const ProtoFile file(R"(g (float[n, 2] x) => (float[n, 2] y)
  <int8[2, 2] q = {1, 2, 3, 4}, float s = {0.5}, float[2] a = {1, 2}, float[2] b = {3, 4}> {
    w = DequantizeLinear(q, s)
    t = Transpose(w)
    p = MatMul(x, t)
    c = Add(a, b)
    y = Add(p, c)
  })");
  const std::string out = file.beside("out.onnx");
  save(Model::load(file.path()), nullptr, {}, out);
  EXPECT_EQ(operators(parse(out)),
            (std::vector<std::string>{"DequantizeLinear", "Transpose", "MatMul", "Add"}));
}

}  // namespace
}  // namespace redfuser
