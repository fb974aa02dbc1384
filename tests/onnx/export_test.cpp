// From graphs back to files: the three forms, regions, external data, failures.
#include "onnx/export/export.h"

#include <gtest/gtest.h>
#include <onnx/checker.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <set>

#include "onnx/export/convex_regions.h"
#include "onnx/proto/tensor_file.h"
#include "support/proto_file.h"
#include "support/test_paths.h"

namespace redfuser {
namespace {

namespace fs = std::filesystem;

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

::onnx::ModelProto parse(const std::string& path) {
  ::onnx::ModelProto model;
  EXPECT_TRUE(model.ParseFromString(read(path)));
  return model;
}

// A chain of operators: 0 Mul, 1 Relu, 2 Exp, 3 Neg, 4 Add(2, 3), 5 Softmax.
constexpr const char* kChain = R"(g (float[n, 8] x) => (float[n, 8] y)
  <float[8] w = {1, 2, 3, 4, 5, 6, 7, 8}> {
    [mul] a = Mul(x, w)
    [relu] b = Relu(a)
    [exp] c = Exp(b)
    [neg] d = Neg(c)
    [add] e = Add(c, d)
    [softmax] y = Softmax<axis = -1>(e)
  })";

onnx::ExportResult save(const onnx::LoadedModel& model, const std::string& path,
                        const std::vector<onnx::ExportRegion>& regions = {},
                        onnx::EmitMode mode = onnx::EmitMode::Function) {
  onnx::ExportOptions options;
  options.emit = mode;
  return save_model(model, model.graph, regions, options, path);
}

TEST(Export, ARegionBecomesAFunction) {
  const ProtoFile file(kChain);
  const auto model = onnx::load_model(file.path());
  const std::string out = file.beside("out.onnx");
  const onnx::ExportResult result = save(*model, out, {{"tail", "row", {1, 2, 3, 4, 5}}});
  ASSERT_EQ(result.regions.size(), 1u);
  EXPECT_EQ(result.regions[0].nodes,
            (std::vector<std::string>{"relu", "exp", "neg", "add", "softmax"}));
  EXPECT_TRUE(result.notes.empty());
  EXPECT_EQ(result.operators_after,
            (std::map<std::string, int>{{"Mul", 1}, {"ai.redfuser.tail", 1}}));
  const ::onnx::ModelProto written = parse(out);
  ASSERT_EQ(written.functions_size(), 1);
  const ::onnx::FunctionProto& function = written.functions(0);
  EXPECT_EQ(function.domain(), "ai.redfuser");
  ASSERT_EQ(function.input_size(), 1);
  EXPECT_EQ(function.input(0), "a");
  ASSERT_EQ(function.output_size(), 1);
  EXPECT_EQ(function.output(0), "y");
  EXPECT_EQ(function.node_size(), 5);
  // Read again, it is the same graph under the call's name.
  const auto again = onnx::load_model(out);
  EXPECT_EQ(again->graph.nodes.size(), model->graph.nodes.size());
  EXPECT_EQ(again->graph.nodes.back().name, "tail");
}

TEST(Export, RegionsAreIdempotent) {
  const ProtoFile file(kChain);
  const std::string first = file.beside("first.onnx"), second = file.beside("second.onnx");
  save(*onnx::load_model(file.path()), first, {{"tail", "row", {1, 2, 3, 4, 5}}});
  save(*onnx::load_model(first), second, {{"tail", "row", {1}}});
  EXPECT_EQ(read(first), read(second));
}

TEST(Export, ARegionWithADetourLosesNodes) {
  const ProtoFile file(kChain);
  const auto model = onnx::load_model(file.path());
  // Neg stands between Exp and Add.
  const onnx::ExportResult result =
      save(*model, file.beside("out.onnx"), {{"broken", "row", {2, 4, 5}}});
  ASSERT_EQ(result.regions.size(), 1u);
  EXPECT_EQ(result.regions[0].nodes, (std::vector<std::string>{"add", "softmax"}));
  ASSERT_EQ(result.notes.size(), 1u);
  EXPECT_NE(result.notes[0].find("\"exp\""), std::string::npos);
}

TEST(Export, SharedNodesGoToTheFirstRegion) {
  const ProtoFile file(kChain);
  const auto model = onnx::load_model(file.path());
  const onnx::ExportResult result =
      save(*model, file.beside("out.onnx"), {{"one", "row", {1, 2}}, {"one", "row", {2, 3, 4, 5}}});
  ASSERT_EQ(result.regions.size(), 2u);
  EXPECT_EQ(result.regions[1].name, "one_2");
  EXPECT_EQ(result.regions[1].nodes, (std::vector<std::string>{"neg", "add", "softmax"}));
  EXPECT_EQ(result.notes.size(), 1u);
}

TEST(Export, ConstantsOfOneRegionMoveIn) {
  const ProtoFile file(R"(g (float[n, 8] x) => (float[n, 8] y) {
    c = Constant<value_float = 2.0>()
    k = Constant<value_ints = [8]>()
    z = Cast<to = 1>(k)
    a = Mul(x, c)
    y = Add(a, z)
  })");
  const auto model = onnx::load_model(file.path());
  const std::string out = file.beside("out.onnx");
  save(*model, out, {{"r", "row", {3, 4}}});
  const ::onnx::ModelProto written = parse(out);
  EXPECT_EQ(written.graph().node_size(), 1);
  EXPECT_EQ(written.graph().initializer_size(), 0);
  EXPECT_EQ(written.functions(0).input_size(), 1);
  EXPECT_EQ(written.functions(0).node_size(), 4);
}

TEST(Export, InlineHasNoFunctions) {
  const ProtoFile file(
      "g (float[n] x) => (float[n] y) { a = f.twice(x) y = f.twice(a) }",
      "<domain: \"f\", opset_import: [\"\" : 20]> twice (p) => (r) { r = Add(p, p) }");
  const auto model = onnx::load_model(file.path());
  const std::string out = file.beside("out.onnx");
  save(*model, out, {}, onnx::EmitMode::Inline);
  const ::onnx::ModelProto written = parse(out);
  EXPECT_EQ(written.functions_size(), 0);
  EXPECT_EQ(onnx::operator_counts(written), (std::map<std::string, int>{{"Add", 2}}));
}

TEST(Export, StandardIsPrimitive) {
  const ProtoFile file(kChain);
  const auto model = onnx::load_model(file.path());
  const std::string out = file.beside("out.onnx");
  save(*model, out, {}, onnx::EmitMode::Standard);
  const auto again = onnx::load_model(out);
  EXPECT_EQ(onnx::operator_counts(*again->proto).count("Softmax"), 0u);
  EXPECT_EQ(again->graph.nodes.size(), model->graph.nodes.size());
}

// A newer format than the checker knows is read, and written in the checker's newest.
TEST(Export, NewestFormatsAreWrittenAsTheChecker) {
  ProtoFile file(kChain);
  file.model().set_ir_version(14);
  const auto model = onnx::load_model(file.path());
  for (const onnx::EmitMode mode :
       {onnx::EmitMode::Function, onnx::EmitMode::Inline, onnx::EmitMode::Standard}) {
    const std::string out = file.beside("out.onnx");
    save(*model, out, {{"tail", "row", {1, 2, 3, 4, 5}}}, mode);
    EXPECT_LE(parse(out).ir_version(), ::onnx::Version::IR_VERSION);
  }
}

TEST(Export, StandardLiftsNodesToOneOpset) {
  // Elu's body is written for opset 18, where axes of reductions are an input.
  const ProtoFile file(
      "g (float[n, 8] x) => (float[n, 1] y) { a = Elu(x) y = ReduceMax<axes = [1]>(a) }", "", 13);
  const std::string out = file.beside("out.onnx");
  save(*onnx::load_model(file.path()), out, {}, onnx::EmitMode::Standard);
  EXPECT_EQ(onnx::load_model(out)->outputs[0].dims[1].size, 1);
}

class RealExport : public testing::TestWithParam<const char*> {};

TEST_P(RealExport, IsDeterministicAndLoads) {
  const ProtoFile folder(kChain);
  const auto model =
      onnx::load_model(std::string(test_paths::models()) + "/" + GetParam() + "/model.onnx");
  std::vector<onnx::ExportRegion> regions;
  for (int first = 0; first < 70; first += 13) {
    regions.push_back({"region", "row", {}});
    for (int n = first; n < first + 11; ++n) regions.back().sources.push_back(n);
  }
  for (const onnx::EmitMode mode :
       {onnx::EmitMode::Function, onnx::EmitMode::Inline, onnx::EmitMode::Standard}) {
    const std::string one = folder.beside("one.onnx"), two = folder.beside("two.onnx");
    save(*model, one, regions, mode);
    save(*onnx::load_model(model->path), two, regions, mode);
    EXPECT_EQ(read(one), read(two));
    const auto again = onnx::load_model(one);
    ASSERT_EQ(again->outputs.size(), 1u);
    EXPECT_EQ(again->outputs[0].name, "out");
    EXPECT_EQ(again->outputs[0].dims.size(), model->outputs[0].dims.size());
  }
}

INSTANTIATE_TEST_SUITE_P(Models, RealExport,
                         testing::Values("bert.dynamo23.sdpa", "gemma2.dynamo.eager",
                                         "swin.dynamo.eager", "t5_encoder.ts.eager"));

TEST(Export, LargeTensorsGoToExternalData) {
  ProtoFile file("g (float[n] x) => (float[n] y) { a = Add(x, w) y = Add(a, v) }");
  for (const char* name : {"w", "v"}) {
    ::onnx::TensorProto& tensor = *file.graph().add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(::onnx::TensorProto::FLOAT);
    tensor.add_dims(name[0] == 'w' ? 1000 : 1);
    tensor.set_raw_data(std::string(name[0] == 'w' ? 4000 : 4, name[0]));
  }
  const auto model = onnx::load_model(file.path());
  onnx::ExportOptions options;
  options.external_threshold = 100;
  const std::string out = file.beside("out.onnx");
  save_model(*model, model->graph, {}, options, out);
  EXPECT_EQ(read(out + ".data"), std::string(4000, 'w'));
  ::onnx::checker::check_model(out);
  // Onto itself: the data that is being replaced stays mapped until it is written.
  const auto external = onnx::load_model(out);
  save_model(*external, external->graph, {}, options, out);
  EXPECT_EQ(read(out + ".data"), std::string(4000, 'w'));
  save_model(*onnx::load_model(out), external->graph, {}, onnx::ExportOptions(),
             file.beside("whole.onnx"));
  EXPECT_EQ(parse(file.beside("whole.onnx")).graph().initializer(0).raw_data(),
            std::string(4000, 'w'));
}

std::string save_error(const onnx::LoadedModel& model, const std::string& path) {
  try {
    save(model, path);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(Export, FailuresLeaveNothingBehind) {
  const ProtoFile file(kChain);
  const auto model = onnx::load_model(file.path());
  const std::string folder = file.beside("folder");
  fs::create_directory(folder);
  EXPECT_NE(save_error(*model, folder).find("directory"), std::string::npos);
  EXPECT_NE(save_error(*model, folder + "/missing/out.onnx").find("missing/out.onnx"),
            std::string::npos);
  EXPECT_NE(save_error(*model, "/dev/full").find("No space left"), std::string::npos);
  EXPECT_EQ(save_error(*model, "/dev/null"), "");

  const std::string target = file.write("folder/out.onnx", "old");
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{64, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string message = save_error(*model, target);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_NE(message.find(target + ": cannot be written: File too large"), std::string::npos);
  EXPECT_EQ(read(target), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 1);
}

TEST(Export, TensorFiles) {
  const ProtoFile file(kChain);
  Tensor tensor(DType::Int16, {2, 3});
  for (int i = 0; i < 6; ++i) tensor.as<int16_t>()[i] = static_cast<int16_t>(i - 3);
  onnx::write_tensor_file(file.beside("t.pb"), {"x", tensor});
  const onnx::NamedTensor again = onnx::read_tensor_file(file.beside("t.pb"));
  EXPECT_EQ(again.name, "x");
  EXPECT_EQ(describe(again.tensor), describe(tensor));
  EXPECT_EQ(again.tensor.as<int16_t>()[5], 2);
  EXPECT_THROW(onnx::read_tensor_file(file.write("bad.pb", "no tensor")), UserError);
}

TEST(ConvexRegions, GroupsThatWouldDependOnEachOther) {
  // 0 -> 1, 2 -> 3: {0, 3} and {1, 2} are convex alone, but not together.
  const onnx::NodeGraph graph{{{1}, {}, {3}, {}}, {}};
  const onnx::Grouping grouping = group_regions(graph, {{0, 3}, {1, 2}});
  EXPECT_EQ(grouping.group[0], 0);
  EXPECT_EQ(grouping.group[3], 0);
  EXPECT_EQ(std::count(grouping.group.begin(), grouping.group.end(), 1), 1);
  EXPECT_EQ(grouped_order(graph, grouping.group).size(), 4u);
}

// Every order of groups is one of the graph: each node after its inputs, each group in one piece.
TEST(ConvexRegions, GroupsOfRandomGraphsCanBeOrdered) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 3000; ++trial) {
    const int count = 2 + static_cast<int>(random() % 24),
              sparse = 2 + static_cast<int>(random() % 8);
    onnx::NodeGraph graph;
    graph.readers.resize(static_cast<size_t>(count));
    for (int n = 0; n < count; ++n) {
      if (trial % 2 == 0) graph.cheap.push_back(random() % 3 == 0);
      for (int reader = n + 1; reader < count; ++reader) {
        if (random() % static_cast<unsigned>(sparse) == 0) {
          graph.readers[static_cast<size_t>(n)].push_back(reader);
        }
      }
    }
    std::vector<std::vector<int>> regions(1 + random() % 6);
    for (std::vector<int>& region : regions) {
      for (int n = 0; n < count; ++n) {
        if (random() % 5 == 0) region.push_back(n);
      }
    }
    const onnx::Grouping grouping = group_regions(graph, regions);
    const std::vector<int> order = grouped_order(graph, grouping.group);
    std::vector<int> place(order.size());
    for (size_t i = 0; i < order.size(); ++i)
      place[static_cast<size_t>(order[i])] = static_cast<int>(i);
    std::set<int> ended;
    for (size_t i = 1; i < order.size(); ++i) {
      const int last = grouping.group[static_cast<size_t>(order[i - 1])];
      const int group = grouping.group[static_cast<size_t>(order[i])];
      if (last >= 0 && last != group) ended.insert(last);
      ASSERT_EQ(ended.count(group), 0u) << trial;
    }
    for (int n = 0; n < count; ++n) {
      for (const int reader : graph.readers[static_cast<size_t>(n)]) {
        ASSERT_LT(place[static_cast<size_t>(n)], place[static_cast<size_t>(reader)]) << trial;
      }
    }
  }
}

TEST(ConvexRegions, SizeArithmeticJoins) {
  // 0 -> 1 -> 2 and 0 -> 2, where 1 is cheap.
  const onnx::NodeGraph graph{{{1, 2}, {2}, {}}, {false, true, false}};
  const onnx::Grouping grouping = group_regions(graph, {{0, 2}});
  EXPECT_EQ(grouping.group, (std::vector<int>{0, 0, 0}));
  EXPECT_TRUE(grouping.dropped.empty());
}

}  // namespace
}  // namespace redfuser
