// Types as files declare them: element types that RedFuser does not have, dimensions without names.
#include <gtest/gtest.h>

#include <onnx/onnx-data.pb.h>

#include <functional>
#include <ostream>

#include "redfuser/inputs.h"
#include "redfuser/io.h"
#include "redfuser/redfuser.h"
#include "support/proto_file.h"

namespace redfuser {
namespace {

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

void expect_parts(const std::string& message, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(message.find(part), std::string::npos) << part << " is not in: " << message;
  }
}

// Places of a file that name an element type, with their names in messages.
struct TypePlace {
  const char *name, *graph;
  void (*set)(::onnx::GraphProto& graph, int code);
  const char* place;
};

std::ostream& operator<<(std::ostream& out, const TypePlace& place) { return out << place.name; }

constexpr const char* kNeg = "g (float[n] x) => (float[n] y) { y = Neg(x) }";

void set_attribute(::onnx::GraphProto& graph, int code) {
  graph.mutable_node(0)->mutable_attribute(0)->set_i(code);
}

const TypePlace kPlaces[] = {
    {"Initializer", "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Mul(x, w) }",
     [](::onnx::GraphProto& g, int code) { g.mutable_initializer(0)->set_data_type(code); },
     "\"w\""},
    {"Input", kNeg,
     [](::onnx::GraphProto& g, int code) {
       g.mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(code);
     },
     "graph input \"x\""},
    {"Output", kNeg,
     [](::onnx::GraphProto& g, int code) {
       g.mutable_output(0)->mutable_type()->mutable_tensor_type()->set_elem_type(code);
     },
     "graph output \"y\""},
    {"SequenceInput", "g (seq(float[n]) x) => (int64 y) { y = SequenceLength(x) }",
     [](::onnx::GraphProto& g, int code) {
       auto* list = g.mutable_input(0)->mutable_type()->mutable_sequence_type();
       list->mutable_elem_type()->mutable_tensor_type()->set_elem_type(code);
     },
     "graph input \"x\""},
    {"OptionalSequenceInput",
     "g (optional(seq(float[n])) x) => (bool y) { y = OptionalHasElement(x) }",
     [](::onnx::GraphProto& g, int code) {
       auto* list = g.mutable_input(0)->mutable_type()->mutable_optional_type();
       auto* inner = list->mutable_elem_type()->mutable_sequence_type()->mutable_elem_type();
       inner->mutable_tensor_type()->set_elem_type(code);
     },
     "graph input \"x\""},
    {"Constant",
     "g (float[2] x) => (float[2] y) { c = Constant<value = float[2] {1, 2}>() "
     "y = Mul(x, c) }",
     [](::onnx::GraphProto& g, int code) {
       g.mutable_node(0)->mutable_attribute(0)->mutable_t()->set_data_type(code);
     },
     "\"Constant_0\""},
    {"Cast", "g (float[n] x) => (float[n] y) { y = Cast<to = 1>(x) }", set_attribute, "\"Cast_0\""},
    {"EyeLike", "g (float[2, 2] x) => (float[2, 2] y) { y = EyeLike<dtype = 1>(x) }", set_attribute,
     "\"EyeLike_0\""},
    {"Random", "g () => (float[2] y) { y = RandomNormal<dtype = 1, shape = [2]>() }", set_attribute,
     "\"RandomNormal_0\""},
    {"Multinomial", "g (float[1, 2] x) => (int32[1, 1] y) { y = Multinomial<dtype = 6>(x) }",
     set_attribute, "\"Multinomial_0\""},
    {"SequenceEmpty", "g () => (int64 y) { s = SequenceEmpty<dtype = 1>() y = SequenceLength(s) }",
     set_attribute, "\"SequenceEmpty_0\""},
    {"BitCast", "g (float[n] x) => (int32[n] y) { y = BitCast<to = 6>(x) }", set_attribute,
     "\"BitCast_0\""},
};

class UnsupportedType : public testing::TestWithParam<TypePlace> {};

TEST_P(UnsupportedType, IsNamedWithItsPlace) {
  const std::pair<int, const char*> types[] = {
      {14, "complex64"},   {15, "complex128"}, {27, "number 27"}, {99, "number 99"},
      {257, "number 257"}, {-1, "number -1"},  {64, "number 64"}};
  for (const auto& [code, name] : types) {
    ProtoFile file(GetParam().graph, "", std::string(GetParam().name) == "BitCast" ? 26 : 20);
    GetParam().set(file.graph(), code);
    const std::string message = error_of([&] {
      const Model model = Model::load(file.path());
      Session(compile(model)).run({});
    });
    expect_parts(message, {name, GetParam().place, "element type", "not supported"});
  }
}

INSTANTIATE_TEST_SUITE_P(All, UnsupportedType, testing::ValuesIn(kPlaces),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(UnsupportedTypes, InTensorFiles) {
  const ProtoFile folder(kNeg);
  ::onnx::TensorProto tensor;
  tensor.set_name("x");
  tensor.set_data_type(::onnx::TensorProto::COMPLEX128);
  tensor.add_dims(1);
  tensor.set_raw_data(std::string(16, '\0'));
  const std::string path = folder.write("x.pb", tensor.SerializeAsString());
  expect_parts(error_of([&] { load_tensors(path); }), {"x.pb", "\"x\"", "complex128"});
}

// Names that exporters give to every dimension of which they know nothing.
TEST(Dimensions, WithoutNamesAreUnknownsOfTheirOwn) {
  const std::string graphs[] = {
      "g (float[1, 3, a, b] x, float[c, 2] z) => (float[1, 3, d, e] y, float[f, 2] w) "
      "{ y = Neg(x) w = Neg(z) }",
      // Without a plan: the condition is an input.
      "g (float[1, 3, a, b] x, float[c, 2] z, bool o) => (float[1, 3, d, e] y, float[f, 2] w) "
      "{ y = If(o) <then_branch = t () => (float[1, 3, d, e] p) { p = Neg(x) }, else_branch = e () "
      "=> (float[1, 3, d, e] q) { q = Abs(x) }> w = Neg(z) }"};
  for (const std::string& graph : graphs) {
    for (const char* name : {"?", "", "-1", "None"}) {
      SCOPED_TRACE(name);
      ProtoFile file(graph);
      for (auto* values : {file.graph().mutable_input(), file.graph().mutable_output()}) {
        for (auto& value : *values) {
          for (auto& dim :
               *value.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim()) {
            if (dim.has_dim_param()) dim.set_dim_param(name);
          }
        }
      }
      const Model model = Model::load(file.path());
      RandomOptions random;
      random.shapes["x"] = {1, 3, 48, 192};
      random.shapes["z"] = {5, 2};
      const NamedTensors outputs = Session(compile(model)).run(random_inputs(model, random));
      EXPECT_EQ(outputs.at("y").dims(), (Dims{1, 3, 48, 192}));
      EXPECT_EQ(outputs.at("w").dims(), (Dims{5, 2}));
      random.shapes.erase("z");
      random.symbols["z.dim0"] = 7;
      EXPECT_EQ(random_inputs(model, random).at("z").dims(), (Dims{7, 2}));
    }
  }
}

TEST(Dimensions, OfOneNameAreEqual) {
  for (const char* name : {"batch", "unk__0", "N"}) {
    ProtoFile file("g (float[a, b] x) => (float[a, b] y) { y = Neg(x) }");
    for (auto& dim : *file.graph()
                          .mutable_input(0)
                          ->mutable_type()
                          ->mutable_tensor_type()
                          ->mutable_shape()
                          ->mutable_dim()) {
      dim.set_dim_param(name);
    }
    const Model model = Model::load(file.path());
    RandomOptions random;
    random.shapes["x"] = {2, 3};
    EXPECT_THROW(random_inputs(model, random), UserError);
  }
}

}  // namespace
}  // namespace redfuser
