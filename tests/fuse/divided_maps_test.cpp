// Maps around nodes that read an operand at several positions, as interpolations do. A division of
// the map stores the operand, and cost decides.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "cpu/select/make_kernel.h"
#include "fuse/alternatives.h"
#include "fuse/node_facts.h"
#include "runtime/program/compiled_program.h"
#include "support/drawn_tensor.h"

namespace redfuser {
namespace {

// Of t, planes of the last dimension of x, at 24x24 points.
struct Case {
  const char* body;
  size_t apart;  // nodes that are steps of their own in the division; 0: without a division
  bool taken;    // by estimate
};

const Case kCases[] = {
    {"y = Resize<mode = \"linear\">(t, , twice)", 1, true},
    {"y = Resize<mode = \"cubic\">(t, , twice)", 1, true},
    {"y = Resize<mode = \"linear\", coordinate_transformation_mode = \"align_corners\">(t, , "
     "twice)",
     1, true},
    {"e = Erf(t) y = Resize<mode = \"linear\">(e, , twice)", 1, true},
    {"r = Resize<mode = \"linear\">(t, , twice) s = Sigmoid(r) y = Mul(r, s)", 1, true},
    {"r = Resize<mode = \"linear\">(t, , twice) y = Transpose<perm = [0, 2, 3, 1]>(r)", 1, true},
    {"r = Resize<mode = \"cubic\">(t, , twice) u = Tanh(r) "
     "y = Resize<mode = \"linear\">(u, , twice)",
     2, true},
    {"r = Resize<mode = \"linear\">(t, , twice) n = Neg(t) "
     "s = Resize<mode = \"cubic\">(n, , twice) y = Concat<axis = 1>(r, s)",
     2, true},
    {"r = Resize<mode = \"cubic\">(t, , twice) a = Constant<value_ints = [1]>() "
     "y = ReduceL1<keepdims = 0>(r, a)",
     1, true},
    {"y = GridSample(t, g)", 1, false},
    {"h = Tanh(g) y = GridSample(t, h)", 1, false},
    {"y = Resize(t, , twice)", 0, false},
    {"e = Erf(t) y = Mul(t, e)", 0, false},
    {"y = AveragePool<kernel_shape = [3, 3]>(t)", 0, false},
    {"y = MaxPool<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(t)", 0, false},
    {"y = ConvTranspose<strides = [2, 2]>(t, w)", 0, false},
};

Model model_of(const Case& c) {
  return Model::parse(
      fmt::format("<ir_version: 9, opset_import: [\"\" : 20]> g (float[1, 576, 64] x, "
                  "float[1, 20, 20, 2] g, float[64, 4, 2, 2] w) => (y) {{ "
                  "twice = Constant<value_floats = [1.0, 1.0, 2.0, 2.0]>() "
                  "sizes = Constant<value = int64[4] {{1, 64, 24, 24}}>() "
                  "turned = Transpose<perm = [0, 2, 1]>(x) t = Reshape(turned, sizes) {} }}",
                  c.body));
}

NamedTensors inputs() {
  std::mt19937 random(5);
  NamedTensors inputs;
  inputs["x"] = testing::drawn_tensor(random, DType::Float32, {1, 576, 64}, 1);
  inputs["g"] = testing::drawn_tensor(random, DType::Float32, {1, 20, 20, 2}, 1.2);
  inputs["w"] = testing::drawn_tensor(random, DType::Float32, {64, 4, 2, 2}, 1);
  return inputs;
}

// Nodes that gather have steps of their own, after those that write what they read.
void expect_apart(const ir::Graph& graph, const std::vector<fuse::Step>& steps, size_t count) {
  const fuse::NodeFacts facts(graph);
  std::set<ir::ValueId> known(graph.inputs.begin(), graph.inputs.end());
  size_t apart = 0;
  for (const fuse::Step& step : steps) {
    for (const ir::NodeId node : step.nodes) {
      if (!facts.gathers(node)) continue;
      ++apart;
      EXPECT_EQ(step.nodes.size(), 1u) << step.label;
      for (const ir::ValueId read : facts.reads(node)) {
        EXPECT_TRUE(known.count(read) || graph.values[static_cast<size_t>(read)].is_constant())
            << step.label;
      }
    }
    known.insert(step.writes.begin(), step.writes.end());
  }
  EXPECT_EQ(apart, count);
}

TEST(DividedMaps, NodesThatReadAroundAPointHaveTheirOperandsInMemory) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.body);
    const Program program = compile(model_of(c));
    const ir::Graph& graph = program.handle()->graph();
    size_t divisions = 0;
    for (const fuse::Step& step : program.handle()->plan.steps) {
      if (!fuse::may_divide(graph, step)) continue;
      for (const fuse::Alternative& division : fuse::alternatives(graph, step)) {
        if (division.name.find("apart") == std::string::npos) continue;
        ++divisions;
        expect_apart(graph, division.steps, c.apart);
      }
    }
    EXPECT_EQ(divisions, c.apart > 0 ? 1u : 0u);
  }
}

// The division, where it is taken, and the map without room for the operand compute what the
// operators do one by one.
TEST(DividedMaps, ResultsAreThoseOfTheReference) {
  SessionOptions reference;
  reference.device = "reference";
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.body);
    const Model model = model_of(c);
    const Program program = compile(model);
    const Tensor expected = Session(program, reference).run(inputs()).at("y");
    const ir::Graph& graph = program.handle()->graph();
    for (const int64_t room : {INT64_MAX, int64_t{0}}) {
      std::vector<Tensor> values;
      for (const ir::Value& value : graph.values) values.push_back(value.constant);
      for (const ir::ValueId id : graph.inputs) {
        values[static_cast<size_t>(id)] = inputs().at(graph.values[static_cast<size_t>(id)].name);
      }
      std::vector<int64_t> symbols;
      ThreadPool pool(2);
      cpu::RunContext context{graph, values, symbols, pool};
      context.room = room;
      bool divided = false;
      for (const fuse::Step& step : program.handle()->plan.steps) {
        const auto kernel = cpu::make_kernel(graph, step);
        if (kernel == nullptr) {
          const auto& alias = std::get<fuse::AliasStep>(step.kind);
          values[static_cast<size_t>(alias.value)] =
              values[static_cast<size_t>(alias.source)].reshaped(
                  cpu::dims_of(graph, alias.value, symbols));
          continue;
        }
        kernel->run(context);
        const cpu::Selection selection = kernel->selection(symbols, false);
        divided |= !selection.offers.empty() && selection.offers.front().divides;
      }
      EXPECT_EQ(divided, c.taken);
      const Tensor& actual = values[static_cast<size_t>(graph.outputs[0])];
      ASSERT_EQ(actual.dims(), expected.dims());
      for (int64_t i = 0; i < expected.size(); ++i) {
        const float wanted = expected.as<float>()[i];
        ASSERT_NEAR(actual.as<float>()[i], wanted, 1e-4f * std::max(1.0f, std::fabs(wanted))) << i;
      }
    }
  }
}

}  // namespace
}  // namespace redfuser
