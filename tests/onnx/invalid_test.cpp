// Files that protobuf can read but that contradict themselves or ONNX's specification: each is
// refused, by the name of the node, tensor or attribute.
#include <gtest/gtest.h>

#include <functional>

#include "onnx/import/import.h"
#include "support/proto_file.h"

namespace redfuser {
namespace {

// The message of the UserError that loading gives; empty if the file is taken.
std::string error_of(const std::string& path) {
  try {
    onnx::load_model(path);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

void expect_refused(const std::string& path, const std::vector<std::string>& parts) {
  const std::string message = error_of(path);
  EXPECT_NE(message, "") << "it was loaded";
  for (const std::string& part : parts) {
    EXPECT_NE(message.find(part), std::string::npos) << "no " << part << " in: " << message;
  }
}

struct Operator {
  const char *name, *inputs, *nodes, *part;
};

class InvalidNode : public testing::TestWithParam<Operator> {};

TEST_P(InvalidNode, IsRefused) {
  const Operator& o = GetParam();
  const ProtoFile file(std::string("g (") + o.inputs + ") => (y) { " + o.nodes + " }");
  expect_refused(file.path(), {"node \"", o.part});
}

#define IMAGE "float[2, 3, 8, 8] x"
#define WEIGHTS "float[4, 3, 3, 3] w"
#define TRANSPOSED "float[3, 4, 3, 3] w"
#define LAYER "float[2, 1, 3] x, float[1, 16, 3] w, float[1, 16, 4] r"

#define SCALED "float[3] x"
#define BYTES "uint8[3] x"

const Operator kOperators[] = {
    {"ScaleOfZero", SCALED, "s = Constant<value_float = 0.0>() y = QuantizeLinear(x, s)",
     "element 0 of the scale \"s\" is 0"},
    {"ScaleThatIsNoNumber", SCALED,
     "s = Constant<value = float[3] {1, nan, 1}>() y = QuantizeLinear<axis = 0>(x, s)",
     "element 1 of the scale \"s\" is nan"},
    {"StoredScaleThatIsNoNumber", BYTES,
     "s = Constant<value = float {nan}>() y = DequantizeLinear(x, s)",
     "element 0 of the scale \"s\" is nan"},
    {"ScaleOfAProductIsZero", "uint8[2, 3] x, uint8[3, 2] w, float s, uint8 z",
     "t = Constant<value_float = 0.0>() y = QLinearMatMul(x, s, z, w, s, z, t, z)",
     "element 0 of the scale \"t\" is 0"},
    {"ScaleOfAConvolutionIsZero", "uint8[1, 3, 5, 5] x, uint8[4, 3, 3, 3] w, float s, uint8 z",
     "t = Constant<value_float = 0.0>() y = QLinearConv(x, s, z, w, s, z, t, z)",
     "element 0 of the scale \"t\" is 0"},
    {"ScaleOfFiltersIsNoNumber", "uint8[1, 3, 5, 5] x, uint8[2, 3, 3, 3] w, float s, uint8 z",
     "t = Constant<value = float[2] {1, nan}>() y = QLinearConv(x, s, z, w, t, z, s, z)",
     "element 1 of the scale \"t\" is nan"},
    {"ScaleAlongTheSum", "uint8[2, 3] x, uint8[3, 2] w, float[2, 3] s, float t, uint8 z",
     "y = QLinearMatMul(x, s, z, w, t, z, t, z)", "differs along the axis of the sum"},
    {"MorePartsThanOutputs", "float[6] x", "y, b = Split<num_outputs = 3>(x)",
     "num_outputs is 3, but it has 2 outputs"},
    {"PartsTwice", "float[6] x",
     "s = Constant<value_ints = [2, 4]>() y, b = Split<num_outputs = 2>(x, s)", "both"},
    {"NoParts", "float[6] x", "y, b = Split(x)", "neither"},
    {"PadRemovesTooMuch", "float[4] x", "p = Constant<value_ints = [-5, 0]>() y = Pad(x, p)",
     "remove more than the 4 elements"},
    {"PadRemovesTooMuchFromBothEnds", "float[4] x",
     "p = Constant<value_ints = [-3, -3]>() y = Pad(x, p)", "remove more than the 4 elements"},
    {"PadWithTheEdgeOfNothing", "float[0] x",
     "p = Constant<value_ints = [2, 0]>() y = Pad<mode = \"edge\">(x, p)", "is empty"},
    {"NormOfPowerZero", IMAGE, "y = LpPool<kernel_shape = [2, 2], p = 0>(x)", "p is 0"},
    {"NormOfANegativePower", IMAGE, "y = LpPool<kernel_shape = [2, 2], p = -1>(x)", "p is -1"},
    {"NegativePadsOfAPool", IMAGE, "y = MaxPool<kernel_shape = [2, 2], pads = [0, 0, -1, 0]>(x)",
     "pads"},
    {"StorageOrder", IMAGE, "y = MaxPool<kernel_shape = [2, 2], storage_order = 2>(x)",
     "storage_order is 2, but it must be one of 0, 1"},
    {"NegativePads", IMAGE ", " WEIGHTS, "y = Conv<pads = [-1, 0, 0, 0]>(x, w)", "pads"},
    {"BiasOfTwoDimensions", IMAGE ", " WEIGHTS ", float[1, 4] b", "y = Conv(x, w, b)",
     "the bias must be a vector"},
    {"BiasForOtherChannels", IMAGE ", " WEIGHTS ", float[5] b", "y = Conv(x, w, b)", "the bias"},
    {"BiasOfATransposedConvolution", IMAGE ", " TRANSPOSED ", float[5] b",
     "y = ConvTranspose(x, w, b)", "the bias"},
    {"OutputPaddingOfAStride", IMAGE ", " TRANSPOSED,
     "y = ConvTranspose<strides = [2, 2], output_padding = [2, 0]>(x, w)", "output_padding 2"},
    {"NegativeOutputPadding", IMAGE ", " TRANSPOSED,
     "y = ConvTranspose<strides = [2, 2], output_padding = [0, -1]>(x, w)", "output_padding -1"},
    {"PositionOfNothing", "float[0, 3] x", "y = ArgMax<axis = 0>(x)", "is empty"},
    {"PositionsBeyondTheData", "float[3, 4] x, int64[2, 5] i", "y = GatherElements<axis = 0>(x, i)",
     "of indices and data"},
    {"EquationWithALabelTwice", "float[2, 3] x", "y = Einsum<equation = \"ij->ii\">(x)", "twice"},
    {"ScalesAndSizes", "float[1, 1, 4, 4] x",
     "s = Constant<value_floats = [1.0, 1.0, 2.0, 2.0]>() z = Constant<value_ints = [1, 1, 8, 8]>()"
     " y = Resize(x, , s, z)",
     "both scales and sizes"},
    {"ZeroPointsForOtherScales", "float[2, 3] x, float[3] s, uint8[2] z",
     "y = QuantizeLinear<axis = 1>(x, s, z)", "zero point"},
    {"HiddenSize", LAYER, "y = LSTM<hidden_size = 5>(x, w, r)", "hidden_size"},
    {"Layout", LAYER, "y = LSTM<hidden_size = 4, layout = 2>(x, w, r)", "layout is 2"},
    {"BlockOrder", "float[1, 8, 2, 2] x", "y = DepthToSpace<blocksize = 2, mode = \"X\">(x)",
     "mode is X, but it must be one of DCR, CRD"},
    {"Approximation", "float[3] x", "y = Gelu<approximate = \"foo\">(x)",
     "approximate is foo, but it must be one of none, tanh"},
    {"RestOfADivision", "int32[3] x", "y = Mod<fmod = 2>(x, x)", "fmod is 2"},
    {"RegionsOfAMode", IMAGE ", float[1, 4] r",
     "i = Constant<value_ints = [0]>() y = RoiAlign<mode = \"foo\">(x, r, i)", "mode is foo"},
    {"CentresOfBoxes", "float[1, 3, 4] b, float[1, 1, 3] s",
     "y = NonMaxSuppression<center_point_box = 2>(b, s)", "center_point_box is 2"},
    {"AspectRatio", "float[1, 1, 4, 4] x",
     "z = Constant<value_ints = [1, 1, 8, 8]>() y = Resize<keep_aspect_ratio_policy = \"foo\">(x, "
     ", "
     ", z)",
     "keep_aspect_ratio_policy is foo"},
    {"ReducedLoss", "float[3, 5] x, int64[3] t",
     "y = NegativeLogLikelihoodLoss<reduction = \"foo\">(x, t)", "reduction is foo"},
    {"AxesInAMatrix", "float[3] x", "a = Constant<value = int64[1, 1] {0}>() y = ReduceSum(x, a)",
     "the axes must be a vector"},
    {"ANumberOfAnotherType", "float[2, 8] x",
     "k = Constant<value = int32[1] {1}>() y, i = TopK(x, k)", "int32"},
    {"ShapeOfAnotherType", "float[6] x",
     "s = Constant<value = int32[2] {2, 3}>() y = Reshape(x, s)", "int32"},
    {"TripsOfAnotherType", "float[2] x",
     "m = Constant<value = int32 {3}>() y = Loop<body = b (int64 i, bool k, float[2] a) => "
     "(bool n, float[2] d) { n = Identity(k) d = Neg(a) }>(m, , x)",
     "int32"},
    {"LoopWhileANumber", "float[2] x",
     "m = Constant<value_int = 3>() c = Constant<value_float = 1.0>() y = Loop<body = b (int64 i, "
     "bool k, float[2] a) => (bool n, float[2] d) { n = Identity(k) d = Neg(a) }>(m, c, x)",
     "float32"},
    {"IfANumber", "float[2] x, float c",
     "y = If<then_branch = t () => (float[2] a) { a = Neg(x) }, else_branch = e () => "
     "(float[2] b) { b = Abs(x) }>(c)",
     "float32"},
    {"BranchesOfDifferentTypes", "float[2] x, bool c",
     "y = If<then_branch = t () => (float[2] a) { a = Neg(x) }, else_branch = e () => "
     "(int64[2] b) { b = Cast<to = 7>(x) }>(c)",
     "different types: float32 and int64"},
    {"BranchesOfDifferentKinds", "float[2] x, bool c",
     "y = If<then_branch = t () => (float[2] a) { a = Neg(x) }, else_branch = e () => "
     "(seq(float[2]) b) { b = SequenceConstruct(x) }>(c)",
     "float32 and a sequence"},
    {"BranchesOfDifferentCounts", "float[2] x, bool c",
     "y = If<then_branch = t () => (float[2] a) { a = Neg(x) }, else_branch = e () => "
     "(float[2] b, float[2] d) { b = Neg(x) d = Abs(x) }>(c)",
     "has 2 outputs where the node has 1"},
    {"BranchThatIsNotTaken", "float[2] x",
     "c = Constant<value = bool {1}>() y = If<then_branch = t () => (float[2] a) { a = Neg(x) }, "
     "else_branch = e () => (int64[2] b) { b = Cast<to = 7>(x) }>(c)",
     "different types"},
    {"BranchOfAnotherTypeThanDeclared", "float[2] x",
     "c = Constant<value = bool {1}>() y = If<then_branch = t () => (int64[2] a) { a = Neg(x) }, "
     "else_branch = e () => (int64[2] b) { b = Cast<to = 7>(x) }>(c)",
     "\"a\" is declared int64 but its node computes float32"},
    {"AxesOfTooManyScans", "float[4, 2] x",
     "y = Scan<num_scan_inputs = 1, scan_input_axes = [0, 0], body = b (float[2] a) => "
     "(float[2] d) { d = Neg(a) }>(x)",
     "scan_input_axes has 2 entries, not 1"},
    {"DirectionOfAScan", "float[4, 2] x",
     "y = Scan<num_scan_inputs = 1, scan_input_directions = [2], body = b (float[2] a) => "
     "(float[2] d) { d = Neg(a) }>(x)",
     "2 is neither 0 (forward) nor 1 (reverse)"},
    // Of a length that is open, so that no iteration is looked at.
    {"ScanOfABodyWithoutItsState", "float[m, 2] x",
     "s = Constant<value_floats = [1.0, 2.0]>() z, y = Scan<num_scan_inputs = 1, body = b "
     "(float[2] a) => (float[2] t, float[2] d) { d = Neg(a) t = Neg(a) }>(s, x)",
     "its body has 1 inputs and 2 outputs for 1 states and 1 scanned values"},
    {"ScanOfABodyOfMoreStates", "float[m, 2] x",
     "z, y = Scan<num_scan_inputs = 1, body = b (float[2] s, float[2] a) => (float[2] t, "
     "float[2] d) { d = Neg(a) t = Neg(s) }>(x)",
     "its body has 2 inputs and 2 outputs for 0 states and 1 scanned values"},
};
INSTANTIATE_TEST_SUITE_P(All, InvalidNode, testing::ValuesIn(kOperators),
                         [](const auto& info) { return info.param.name; });

struct Edit {
  const char* name;
  std::function<void(ProtoFile&)> edit;
  const char* part;
};

::onnx::TensorProto& add_weights(ProtoFile& file) {
  ::onnx::TensorProto& tensor = *file.graph().add_initializer();
  tensor.set_name("w");
  tensor.set_data_type(::onnx::TensorProto::FLOAT);
  tensor.add_dims(3);
  for (const float value : {1.0f, 2.0f, 3.0f}) tensor.add_float_data(value);
  return tensor;
}

::onnx::ValueInfoProto float_vector(const char* name, int64_t size) {
  ::onnx::ValueInfoProto info;
  info.set_name(name);
  auto& type = *info.mutable_type()->mutable_tensor_type();
  type.set_elem_type(::onnx::TensorProto::FLOAT);
  type.mutable_shape()->add_dim()->set_dim_value(size);
  return info;
}

::onnx::AttributeProto& axis_of(ProtoFile& file) {
  return *file.graph().mutable_node(0)->mutable_attribute(0);
}

const Edit kEdits[] = {
    {"RawAndTypedData",
     [](ProtoFile& file) { add_weights(file).set_raw_data(std::string(12, '\0')); },
     "tensor \"w\" has data in 2 places"},
    {"DataOfTwoTypes", [](ProtoFile& file) { add_weights(file).add_int32_data(1); },
     "tensor \"w\" has data in 2 places"},
    {"DataInsideAndOutside",
     [](ProtoFile& file) {
       ::onnx::TensorProto& tensor = add_weights(file);
       tensor.set_data_location(::onnx::TensorProto::EXTERNAL);
       auto* entry = tensor.add_external_data();
       entry->set_key("location");
       entry->set_value("w.bin");
     },
     "tensor \"w\" has data in 2 places"},
    {"DefaultOfAnotherType",
     [](ProtoFile& file) {
       add_weights(file);
       *file.graph().add_input() = float_vector("w", 3);
       file.graph().mutable_input(1)->mutable_type()->mutable_tensor_type()->set_elem_type(
           ::onnx::TensorProto::INT64);
     },
     "initializer \"w\""},
    {"DefaultOfAnotherShape",
     [](ProtoFile& file) {
       add_weights(file);
       *file.graph().add_input() = float_vector("w", 4);
     },
     "initializer \"w\""},
    {"ReferenceOutsideOfAFunction",
     [](ProtoFile& file) {
       add_weights(file);
       axis_of(file).clear_i();
       axis_of(file).set_ref_attr_name("axis");
     },
     "attribute \"axis\" refers to \"axis\", but the node is in no function"},
    {"AttributeWithTwoValues",
     [](ProtoFile& file) {
       add_weights(file);
       axis_of(file).add_ints(1);
     },
     "attribute \"axis\" has values of types INT and INTS"},
    {"AttributeOfAnotherType",
     [](ProtoFile& file) {
       add_weights(file);
       axis_of(file).clear_i();
       axis_of(file).set_f(1);
     },
     "attribute \"axis\" is declared INT but has a value of type FLOAT"},
    {"AttributeTwice",
     [](ProtoFile& file) {
       add_weights(file);
       *file.graph().mutable_node(0)->add_attribute() = axis_of(file);
     },
     "attribute \"axis\" appears twice"},
    {"ValueOfAnotherType",
     [](ProtoFile& file) {
       add_weights(file);
       *file.graph().add_value_info() = float_vector("s", 3);
       file.graph().mutable_value_info(0)->mutable_type()->mutable_tensor_type()->set_elem_type(
           ::onnx::TensorProto::INT64);
     },
     "graph value \"s\" is declared int64 but its node computes float32"},
    {"NewerFormat",
     [](ProtoFile& file) {
       add_weights(file);
       file.model().set_ir_version(99);
     },
     "IR version 99"},
    {"NoFormat",
     [](ProtoFile& file) {
       add_weights(file);
       file.model().set_ir_version(0);
     },
     "IR version 0"},
};

TEST(InvalidFile, IsRefused) {
  constexpr const char* kGraph =
      "g (float[3] x) => (float[3] y) { s = Softmax<axis = 0>(x) y = Add(s, w) }";
  ProtoFile valid(kGraph);
  add_weights(valid);
  EXPECT_EQ(error_of(valid.path()), "");
  for (const Edit& edit : kEdits) {
    SCOPED_TRACE(edit.name);
    ProtoFile file(kGraph);
    edit.edit(file);
    expect_refused(file.path(), {edit.part});
  }
}

// A reference beside a value, and a call with an attribute twice, in and around a function.
TEST(InvalidFile, AttributesOfFunctions) {
  constexpr const char* kGraph = "g (float[3] x) => (float[3] y) { y = f.soft<a = 0>(x) }";
  constexpr const char* kFunction =
      R"(<domain: "f", opset_import: ["" : 20]> soft <a> (p) => (r) { r = Softmax<axis: int = @a>(p) })";
  ProtoFile valid(kGraph, kFunction);
  EXPECT_EQ(error_of(valid.path()), "");
  ProtoFile both(kGraph, kFunction);
  both.model().mutable_functions(0)->mutable_node(0)->mutable_attribute(0)->set_i(0);
  expect_refused(both.path(), {"both a value and a reference to \"a\""});
  ProtoFile twice(kGraph, kFunction);
  *twice.graph().mutable_node(0)->add_attribute() = twice.graph().node(0).attribute(0);
  expect_refused(twice.path(), {"attribute \"a\" appears twice"});
}

// Similar models that are valid.
TEST(InvalidFile, ValidNeighboursAreTaken) {
  const char* graphs[] = {
      "g (float[6] x) => (y) { y, b = Split<num_outputs = 2>(x) }",
      "g (float[4] x) => (y) { p = Constant<value_ints = [-4, 0]>() y = Pad(x, p) }",
      "g (float[4] x) => (y) { p = Constant<value_ints = [-3, 5]>() y = Pad(x, p) }",
      "g (" IMAGE ", " TRANSPOSED
      ") => (y) { y = ConvTranspose<strides = [2, 2], output_padding = [1, 0]>(x, w) }",
      "g (float[3, 4] x, int64[2, 3] i) => (y) { y = GatherElements<axis = 0>(x, i) }",
      "g (float[0, 3] x) => (y) { y = ArgMax<axis = 1>(x) }",
      "g (float[2] x) => (y) { c = Constant<value = bool {1}>() y = If<then_branch = t () => "
      "(float[2] a) { a = Neg(x) }, else_branch = e () => (float[1, 2] b) "
      "{ q = Constant<value_ints = [0]>() b = Unsqueeze(x, q) }>(c) }",
  };
  for (const char* graph : graphs) {
    const ProtoFile file(graph);
    EXPECT_EQ(error_of(file.path()), "") << graph;
  }
}

}  // namespace
}  // namespace redfuser
