// Files that are damaged or made to do harm: a clear one-line error in bounded time.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <random>

#include "onnx/import/import.h"
#include "support/proto_file.h"
#include "support/test_paths.h"

namespace redfuser {
namespace {

namespace fs = std::filesystem;

// The message of the UserError that loading gives; anything else fails the test.
std::string error_of(const std::string& path) {
  try {
    onnx::load_model(path);
  } catch (const UserError& error) {
    const std::string message = error.what();
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    EXPECT_NE(message.find(fs::path(path).filename().string()), std::string::npos) << message;
    return message;
  }
  ADD_FAILURE() << path << " was loaded";
  return "";
}

void expect_error(const std::string& path, const std::string& part) {
  const std::string message = error_of(path);
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

constexpr const char* kSmall = R"(g (float[n, 8] x, int64[k] ids) => (float[n, 8] y, float[k, 8] z)
  <float[8] w = {1, 2, 3, 4, 5, 6, 7, 8}> {
    a = Mul(x, w)
    b = Softmax<axis = -1>(a)
    c = LayerNormalization(b, w)
    d = f.g<k = 2>(c, w)
    s = Shape(d)
    y = Reshape(d, s)
    z = Gather<axis = 0>(x, ids)
  })";
constexpr const char* kSmallFunction =
    R"(<domain: "f", opset_import: ["" : 20]> g <k> (p, q) => (r) {
    one = Constant<value_int: int = @k>()
    o = CastLike(one, p)
    t = Add(p, q)
    r = Div(t, o)
  })";

// Findings of fuzzing: each runs or is refused.
TEST(Hostile, FoundByFuzzing) {
  for (const auto& entry : fs::directory_iterator(test_paths::found())) {
    SCOPED_TRACE(entry.path().filename().string());
    try {
      const Model model = Model::load(entry.path().string());
      NamedTensors inputs;
      for (const ValueInfo& info : model.inputs()) {
        Dims dims;
        for (const auto& dim : info.dims) dims.push_back(dim.size >= 0 ? dim.size : 3);
        Tensor tensor(info.dtype, dims);
        std::fill_n(static_cast<char*>(tensor.mutable_data()), tensor.bytes(), char{1});
        inputs.emplace(info.name, tensor);
      }
      Session(compile(model)).run(inputs);
    } catch (const UserError&) {
    }
  }
}

TEST(Hostile, InputsOfTypesThatMustBeOne) {
  const ProtoFile file(
      "g (double[1,1,9] x) => (double[1,1,7] y) <float[1,1,3] w = {1,2,3}> { y = Conv(x, w) }");
  expect_error(file.write("mixed.onnx", file.bytes()), "of types float64 and float32");
}

TEST(Hostile, NotAModelFile) {
  const ProtoFile file(kSmall, kSmallFunction);
  expect_error(file.beside("missing.onnx"), "No such file");
  fs::create_directory(file.beside("folder.onnx"));
  expect_error(file.beside("folder.onnx"), "directory");
  expect_error(file.write("empty.onnx", ""), "empty");
  expect_error(file.write("text.onnx", "This is no model, it is text.\n"), "not an ONNX model");
  expect_error(file.write("other.onnx", std::string("\x08\x01", 2)), "no");
}

TEST(Hostile, EveryTruncation) {
  const ProtoFile file(kSmall, kSmallFunction);
  const std::string bytes = file.bytes();
  for (size_t size = 0; size < bytes.size(); ++size) {
    try {
      onnx::load_model(file.write("cut.onnx", bytes.substr(0, size)));
    } catch (const UserError&) {
    }
  }
}

// Flips that protobuf or the importer takes may load; nothing may be thrown but UserError.
void flip_bytes(const std::string& bytes, const ProtoFile& folder, int count) {
  std::mt19937 random(7);
  for (int i = 0; i < count; ++i) {
    std::string damaged = bytes;
    for (int flips = 1 + static_cast<int>(random() % 3); flips > 0; --flips) {
      damaged[random() % damaged.size()] ^= static_cast<char>(1 << (random() % 8));
    }
    try {
      onnx::load_model(folder.write("flipped.onnx", damaged));
    } catch (const UserError& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
}

TEST(Hostile, ByteFlipsOfASmallModel) {
  const ProtoFile file(kSmall, kSmallFunction);
  flip_bytes(file.bytes(), file, 3000);
}

TEST(Hostile, ByteFlipsOfARealModel) {
  ProtoFile file(kSmall, kSmallFunction);
  std::ifstream source(std::string(test_paths::models()) + "/bert.dynamo23.sdpa/model.onnx",
                       std::ios::binary);
  ASSERT_TRUE(file.model().ParseFromIstream(&source));
  // Flips should hit structure, not weights.
  for (const auto& tensor : file.graph().initializer()) {
    if (tensor.raw_data().size() <= 64) continue;
    ::onnx::ValueInfoProto& input = *file.graph().add_input();
    input.set_name(tensor.name());
    auto& type = *input.mutable_type()->mutable_tensor_type();
    type.set_elem_type(tensor.data_type());
    for (const int64_t dim : tensor.dims()) type.mutable_shape()->add_dim()->set_dim_value(dim);
  }
  auto& initializers = *file.graph().mutable_initializer();
  for (int i = initializers.size() - 1; i >= 0; --i) {
    if (initializers[i].raw_data().size() > 64) initializers.DeleteSubrange(i, 1);
  }
  flip_bytes(file.bytes(), file, 500);
}

struct Graph2Error {
  const char *name, *graph, *functions, *part;
};

class BadGraph : public testing::TestWithParam<Graph2Error> {};

TEST_P(BadGraph, IsRefused) {
  const ProtoFile file(GetParam().graph, GetParam().functions);
  expect_error(file.path(), GetParam().part);
}

const Graph2Error kBadGraphs[] = {
    {"Cycle", "g (float[n] x) => (float[n] y) { a = Add(x, c) b = Neg(a) c = Abs(b) y = Exp(c) }",
     "", "cycle: [Add] node \"Add_0\", [Neg] node \"Neg_1\", [Abs] node \"Abs_2\""},
    {"SelfCycle", "g (float[n] x) => (float[n] y) { y = Add(x, y) }", "", "\"Add_0\""},
    {"Dangling", "g (float[n] x) => (float[n] y) { y = Add(x, nowhere) }", "", "\"nowhere\""},
    {"NoOutput", "g (float[n] x) => (float[n] y) { z = Neg(x) }", "", "\"y\" is never produced"},
    {"TwoProducers", "g (float[n] x) => (float[n] y) { y = Neg(x) y = Exp(x) }", "",
     "\"y\" is defined twice"},
    {"InputTwice", "g (float[n] x, float[n] x) => (float[n] y) { y = Neg(x) }", "",
     "\"x\" is defined twice"},
    {"OutputTwice", "g (float[n] x) => (float[n] y, float[n] y) { y = Neg(x) }", "",
     "two graph outputs are named \"y\""},
    {"Unsupported", "g (float[n] x) => (float[n] y) { a = Foo(x) b = Foo(a) y = f.Bar(b) }", "",
     "Foo of opset 20 (2: \"Foo_0\", \"Foo_1\"); f.Bar of opset 1 (1: \"Bar_2\")"},
    {"Subgraph",
     "g (bool c, float[n] x) => (float[n] y) { y = If(c) <then_branch = t () => (float[n] a) "
     "{ a = Neg(x) }, else_branch = e () => (float[n] b) { b = Foo(x) }> }",
     "", "Foo of opset 20"},
    {"Sequence", "g (seq(float[n]) x) => (int64 y) { y = SequenceLongest(x) }", "",
     "SequenceLongest"},
    {"MissingAttribute", "g (float[n] x) => (float[n] y) { y = Cast(x) }", "", "\"Cast_0\""},
    {"TooManyInputs", "g (float[n] x) => (float[n] y) { y = Neg(x, x) }", "", "\"Neg_0\""},
    {"Recursion", "g (float[n] x) => (float[n] y) { y = f.a(x) }",
     "<domain: \"f\", opset_import: [\"\" : 20, \"f\" : 1]> a (p) => (r) { r = f.b(p) }"
     "<domain: \"f\", opset_import: [\"\" : 20, \"f\" : 1]> b (p) => (r) { r = f.a(p) }",
     "calls itself"},
    {"NamesOfSubgraphsStayInside",
     "g (bool c, float[n] x) => (float[n] y) { z = If(c) <then_branch = t () => (float[n] a) "
     "{ a = Neg(x) }, else_branch = e () => (float[n] b) { b = Abs(x) }> y = Exp(a) }",
     "", "\"a\" is produced by no node"},
    {"CaptureOfNothing",
     "g (float[n] x) => (float[n] y) { c = Constant<value = bool {1}>() y = If(c) <then_branch = "
     "t () => (float[n] a) { a = Add(x, nowhere) }, else_branch = e () => (float[n] b) "
     "{ b = Abs(x) }> }",
     "", "\"nowhere\""},
    {"CycleThroughACapture",
     "g (bool c, float[n] x) => (float[n] y) { y = If(c) <then_branch = t () => (float[n] a) "
     "{ a = Neg(z) }, else_branch = e () => (float[n] b) { b = Abs(x) }> z = Exp(y) }",
     "", "cycle: [If] node \"If_0\", [Exp] node \"Exp_1\""},
    {"TwoProducersInASubgraph",
     "g (float[n] x) => (float[n] y) { c = Constant<value = bool {1}>() y = If(c) <then_branch = "
     "t () => (float[n] a) { a = Neg(x) a = Abs(x) }, else_branch = e () => (float[n] b) "
     "{ b = Abs(x) }> }",
     "", "\"a\" is defined twice"},
    {"FunctionInUnsupported", "g (float[n] x) => (float[n] y) { y = f.a(x) }",
     "<domain: \"f\", opset_import: [\"\" : 20, \"f\" : 1]> a (p) => (r) { r = Foo(p) }",
     "Foo of opset 20 (1: \"a_0\")"},
};
INSTANTIATE_TEST_SUITE_P(All, BadGraph, testing::ValuesIn(kBadGraphs),
                         [](const auto& info) { return info.param.name; });

TEST(Hostile, NodesInAnyOrderSeeWhatTheyCapture) {
  const ProtoFile file(
      "g (float[n] x) => (float[n] y) { y = If(c) <then_branch = t () => (float[n] a) "
      "{ a = Neg(b) b = Add(z, x) }, else_branch = e () => (float[n] d) { d = Abs(x) }> "
      "z = Exp(x) c = Constant<value = bool {1}>() }");
  const auto model = onnx::load_model(file.path());
  ASSERT_EQ(model->graph.nodes.size(), 3u);
  EXPECT_EQ(model->graph.nodes[0].op, "Exp");
  EXPECT_EQ(model->graph.nodes[1].op, "Add");
  EXPECT_EQ(model->graph.nodes[2].op, "Neg");
}

TEST(Hostile, OpsetsAreShownAsTheFileHasThem) {
  for (const int64_t opset : {int64_t{-3}, int64_t{0}, int64_t{1000}}) {
    ProtoFile file("g (float[n] x) => (float[n] y) { y = Neg(x) }");
    for (auto& import : *file.model().mutable_opset_import()) {
      if (import.domain().empty()) import.set_version(opset);
    }
    expect_error(file.path(), "opset " + std::to_string(opset) + " of ai.onnx");
  }
}

TEST(Hostile, LongNamesAreCutInMessages) {
  ProtoFile file("g (float[n] x) => (float[n] y) { y = Neg(x) }");
  file.graph().mutable_node(0)->set_op_type(std::string(1 << 20, 'N'));
  EXPECT_LT(error_of(file.path()).size(), 2100u);
}

TEST(Hostile, MessagesNestedTooDeeply) {
  ProtoFile file("g (float[n] x) => (float[n] y) { y = Neg(x) }");
  ::onnx::GraphProto* graph = &file.graph();
  for (int depth = 0; depth < 1000; ++depth) {
    ::onnx::AttributeProto* branch = graph->mutable_node(0)->add_attribute();
    branch->set_name("then_branch");
    graph = branch->mutable_g();
    graph->add_node();
  }
  expect_error(file.path(), "protobuf cannot read it");
}

// Each trip of a loop of 64 is a loop of 64: 16 million nodes if all were made.
TEST(Hostile, LoopBombs) {
  std::string body = "t4 = Neg(s4)";
  for (int depth = 3; depth >= 0; --depth) {
    const std::string d = std::to_string(depth), inner = std::to_string(depth + 1);
    body = "n" + d + " = Constant<value = int64 {64}>() t" + d + " = Loop <body = b (int64 i" + d +
           ", bool go" + d + ", float[m] s" + inner + ") => (bool on" + d + ", float[m] t" + inner +
           ") { on" + d + " = Identity(go" + d + ") " + body + " }> (n" + d + ", \"\", s" + d + ")";
  }
  const ProtoFile file("g (float[m] s0) => (float[m] t0) { " + body + " }");
  expect_error(file.path(), "more than 1000000 nodes");
}

std::string error_of_run(const std::string& path, const NamedTensors& inputs) {
  SessionOptions options;
  options.memory_limit = 1 << 20;
  try {
    Session(compile(Model::load(path)), options).run(inputs);
  } catch (const UserError& error) {
    return error.what();
  }
  ADD_FAILURE() << path << " ran";
  return "";
}

TEST(Hostile, SizesThatOnlyARunTells) {
  Tensor size(DType::Int64, {2}), x(DType::Float32, {2});
  x.as<float>()[0] = x.as<float>()[1] = 1;
  const std::pair<const char*, const char*> cases[] = {
      {"g (int64[2] s, float[2] x) => (float[a, b] y) { y = ConstantOfShape(s) }", "limit of"},
      {"g (int64[2] s, float[2] x) => (float[a, b] y) { y = Expand(x, s) }", "limit of"},
      {"g (int64[2] s, float[2] x) => (int64[2, c] y) { e = Expand(x, s) y = NonZero(e) }",
       "limit of"},
  };
  for (const auto& [graph, part] : cases) {
    const ProtoFile file(graph);
    size.as<int64_t>()[0] = 1 << 20;
    size.as<int64_t>()[1] = 2;
    const std::string message = error_of_run(file.path(), {{"s", size}, {"x", x}});
    EXPECT_NE(message.find(part), std::string::npos) << message;
    size.as<int64_t>()[0] = int64_t{1} << 62;
    EXPECT_FALSE(error_of_run(file.path(), {{"s", size}, {"x", x}}).empty());
  }
}

// A text that doubles at every trip.
TEST(Hostile, StringsGrowToTheLimitOnly) {
  const ProtoFile file(
      "g (string[1] x, int64 n) => (string[1] y) { y = Loop <body = b (int64 i, bool go, string[1] "
      "s) => (bool on, string[1] t) { on = Identity(go) t = StringConcat(s, s) }> (n, \"\", x) }");
  Tensor trips(DType::Int64, {});
  *trips.as<int64_t>() = 60;
  const std::string message =
      error_of_run(file.path(), {{"x", Tensor::strings({1}, {"text"})}, {"n", trips}});
  EXPECT_NE(message.find("do not fit into the memory limit"), std::string::npos) << message;
}

TEST(Hostile, OpsetsOutsideTheWindow) {
  for (const int opset : {0, 28, 1000000}) {
    ProtoFile file("g (float[n] x) => (float[n] y) { y = Neg(x) }");
    file.model().mutable_opset_import(0)->set_version(opset);
    expect_error(file.path(), "opsets 1 to 27");
  }
}

TEST(Hostile, FunctionBombs) {
  const ProtoFile wide("g (float[n] x) => (float[n] y) { y = f.b1(x) }", doubling_functions(40));
  expect_error(wide.path(), "more than 1000000 nodes");

  std::string functions;
  for (int level = 1; level <= 3000; ++level) {
    const std::string callee = level == 3000 ? "Neg" : "f.d" + std::to_string(level + 1);
    functions += "<domain: \"f\", opset_import: [\"\" : 20, \"f\" : 1]> d" + std::to_string(level) +
                 " (p) => (r) { r = " + callee + "(p) }\n";
  }
  const ProtoFile deep("g (float[n] x) => (float[n] y) { y = f.d1(x) }", functions);
  expect_error(deep.path(), "more than 64 deep");
}

::onnx::TensorProto& add_weight(ProtoFile& file, const std::vector<int64_t>& dims) {
  ::onnx::TensorProto& tensor = *file.graph().add_initializer();
  tensor.set_name("w");
  tensor.set_data_type(::onnx::TensorProto::FLOAT);
  for (const int64_t dim : dims) tensor.add_dims(dim);
  return tensor;
}

constexpr const char* kWeighted = "g (float[n] x) => (float[n] y) { y = Mul(x, w) }";

TEST(Hostile, SizesOfInitializers) {
  const std::pair<std::vector<int64_t>, const char*> cases[] = {
      {{int64_t{1} << 62, 8}, "overflows"},
      {{int64_t{1} << 61}, "overflows"},
      {{-3}, "negative"},
      {{int64_t{1} << 40}, "bytes of data"},
      {{5}, "16 bytes of data"},
      {{0, int64_t{1} << 62, 16}, "overflows"},
  };
  for (const auto& [dims, part] : cases) {
    ProtoFile file(kWeighted);
    add_weight(file, dims).set_raw_data(std::string(16, '\0'));
    expect_error(file.path(), part);
  }
  ProtoFile file(
      "g (float[n] x) => (float[n] y) "
      "{ s = Constant<value_ints = [4611686018427387904, 4611686018427387904]>() "
      "y = Expand(x, s) }");
  error_of(file.path());
}

struct External {
  const char *location, *offset, *length, *part;
};

TEST(Hostile, ExternalDataStaysInTheModelsFolder) {
  const External cases[] = {
      {"/etc/passwd", "0", "16", "leaves the model's folder"},
      {"../other.bin", "0", "16", "leaves the model's folder"},
      {"sub/../../other.bin", "0", "16", "leaves the model's folder"},
      {"", "0", "16", "leaves the model's folder"},
      {"link.bin", "0", "16", "links out of the model's folder"},
      {"linked/other.bin", "0", "16", "links out of the model's folder"},
      {"missing.bin", "0", "16", "No such file"},
      {"sub", "0", "16", "directory"},
      {"good.bin", "8", "16", "outside"},
      {"good.bin", "18446744073709551608", "16", "outside"},
      {"good.bin", "-1", "16", "not a number"},
      {"good.bin", "0", "1x", "not a number"},
      {"good.bin", "0", "12", "12 bytes of external data where its type and shape need 16"},
  };
  for (const External& entry : cases) {
    ProtoFile outside(kWeighted);
    outside.write("other.bin", std::string(16, '\0'));
    ProtoFile file(kWeighted);
    file.write("good.bin", std::string(16, '\0'));
    fs::create_directory(file.beside("sub"));
    fs::create_symlink(outside.beside("other.bin"), file.beside("link.bin"));
    fs::create_directory_symlink(fs::path(outside.beside("other.bin")).parent_path(),
                                 file.beside("linked"));
    ::onnx::TensorProto& tensor = add_weight(file, {4});
    tensor.set_data_location(::onnx::TensorProto::EXTERNAL);
    const std::pair<const char*, const char*> fields[] = {
        {"location", entry.location}, {"offset", entry.offset}, {"length", entry.length}};
    for (const auto& [key, value] : fields) {
      auto* field = tensor.add_external_data();
      field->set_key(key);
      field->set_value(value);
    }
    expect_error(file.path(), entry.part);
  }
}

}  // namespace
}  // namespace redfuser
