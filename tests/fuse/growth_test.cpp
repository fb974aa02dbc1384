// Regions grow over everything that the algebra takes, whatever the order of the nodes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fuse/alternatives.h"
#include "fuse/make_plan.h"
#include "fuse/regions.h"
#include "redfuser/compare.h"
#include "redfuser/inputs.h"
#include "redfuser/redfuser.h"
#include "runtime/program/compiled_program.h"
#include "support/graph_builder.h"

namespace redfuser::testing {
namespace {

// exp(s - m) · v / (Σ exp(s - m) + exp(c - m)) with m = max(max s, c): attention with a sink, as it
// is written by hand; the sum or the contraction first.
std::vector<std::string> classes(bool sum_first) {
  GraphBuilder b;
  ir::ValueId q = b.input("q", DType::Float32, {-1, 64});
  ir::ValueId k = b.input("k", DType::Float32, {64, 40});
  ir::ValueId v = b.input("v", DType::Float32, {40, 64});
  ir::ValueId c = b.input("c", DType::Float32, {1, 1});
  ir::ValueId axes = b.constant(integers({1}, {-1}));
  ir::ValueId s = b.node("MatMul", {q, k});
  ir::ValueId m = b.node("Max", {b.node("ReduceMax", {s, axes}), c});
  ir::ValueId e = b.node("Exp", {b.node("Sub", {s, m})});
  ir::ValueId sum = -1, product = -1;
  if (sum_first) sum = b.node("ReduceSum", {e, axes});
  product = b.node("MatMul", {e, v});
  if (!sum_first) sum = b.node("ReduceSum", {e, axes});
  ir::ValueId sink = b.node("Exp", {b.node("Sub", {c, m})});
  b.output(b.node("Div", {product, b.node("Add", {sum, sink})}));
  const fuse::NodeFacts facts(b.graph);
  const fuse::Regions regions = find_regions(facts, true);
  EXPECT_TRUE(regions.unfused.empty());
  std::vector<std::string> found;
  for (const fuse::Region& region : regions.fused) found.push_back(region.region_class);
  return found;
}

TEST(RegionTrace, OrderOfNodesDoesNotMatter) {
  EXPECT_EQ(classes(true), std::vector<std::string>{"attention"});
  EXPECT_EQ(classes(false), std::vector<std::string>{"attention"});
}

// Two products with elementwise nodes between them are one region where what lies between is much
// larger than the inputs of the first.
TEST(RegionGrowth, ChainsProductsAroundALargeIntermediate) {
  for (const int64_t depth : {8, 128}) {
    GraphBuilder b;
    const ir::ValueId q = b.input("q", DType::Float32, {256, depth});
    const ir::ValueId k = b.input("k", DType::Float32, {depth, 300});
    const ir::ValueId v = b.input("v", DType::Float32, {300, 8});
    const ir::ValueId p = b.node("Sigmoid", {b.node("Tanh", {b.node("MatMul", {q, k})})});
    b.output(b.node("MatMul", {p, v}));
    const fuse::NodeFacts facts(b.graph);
    const fuse::Regions regions = find_regions(facts, true);
    ASSERT_EQ(regions.fused.size(), depth == 8 ? 1u : 0u) << depth;
    if (depth == 8) EXPECT_EQ(regions.fused[0].region_class, "chain");
  }
}

// The nearest code of every row, written as [1, rows], and read by its number or written as
// [rows, 1]: these are the same bytes, so the region writes the number once and can be divided.
TEST(RegionGrowth, LeavesResultsUnderOtherShapesAlone) {
  for (const std::string other : {"none", "read", "column"}) {
    GraphBuilder b;
    const ir::ValueId x = b.input("x", DType::Float32, {75, 66});
    const ir::ValueId codes = b.input("codes", DType::Float32, {66, 1024});
    const ir::ValueId table = b.input("table", DType::Float32, {1024, 8});
    const ir::ValueId distance = b.node("Sqrt", {b.node("Relu", {b.node("MatMul", {x, codes})})});
    const ir::ValueId number =
        b.node("ArgMin", {distance}, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}});
    b.output(b.node("Unsqueeze", {number, b.constant(integers({1}, {0}))}));
    if (other == "read") b.output(b.node("Gather", {table, number}));
    if (other == "column") b.output(b.node("Unsqueeze", {number, b.constant(integers({1}, {1}))}));
    const auto graph = std::make_shared<const ir::Graph>(b.graph);
    const fuse::Plan plan = fuse::make_plan(graph, {});
    int regions = 0, aliases = 0;
    for (const fuse::Step& step : plan.steps) {
      aliases += std::holds_alternative<fuse::AliasStep>(step.kind);
      if (!std::holds_alternative<fuse::CascadeStep>(step.kind)) continue;
      ++regions;
      EXPECT_EQ(step.writes.size(), 1u);
      EXPECT_FALSE(fuse::alternatives(*graph, step).empty());
    }
    EXPECT_EQ(regions, 1);
    EXPECT_EQ(aliases, other == "none" ? 0 : (other == "read" ? 1 : 2));
  }
}

// A norm over a sum that others read as well writes the sum, unless a product or a move of elements
// is to write it.
TEST(RegionGrowth, WritesElementsThatOthersRead) {
  struct Case {
    const char *sum, *outputs;
    size_t steps, regions;
  };
  const Case cases[] = {
      {"s = Add(x, r)", "y, s", 1, 1},
      {"u = Tanh(x) s = Add(u, r)", "y, s", 1, 1},
      {"u = Mul(x, v) s = Sub(u, r)", "y, s", 1, 1},
      {"s = MatMul(x, w)", "y, s", 2, 1},
      {"p = MatMul(x, w) s = Add(p, r)", "y, s", 2, 1},
      {"p = MatMul(x, w) t = Tanh(p) s = Mul(t, r)", "y, s", 2, 1},
      {"t = Transpose<perm = [0, 2, 1]>(z) s = Concat<axis = 1>(t, x)", "y, s", 2, 1},
  };
  for (const Case& c : cases) {
    const Model model = Model::parse(fmt::format(
        "<ir_version: 9, opset_import: [\"\" : 20]> g (float[4,9,64] x, float[4,9,64] r, "
        "float[64] v, float[64,64] w, float[4,64,9] z) => ({}) {{ {} y = LayerNormalization(s, v) "
        "}}",
        c.outputs, c.sum));
    const Program program = compile(model);
    const auto& steps = program.handle()->plan.steps;
    EXPECT_EQ(steps.size(), c.steps) << c.sum;
    size_t regions = 0;
    for (const fuse::Step& step : steps) {
      regions += std::holds_alternative<fuse::CascadeStep>(step.kind) ? 1 : 0;
    }
    EXPECT_EQ(regions, c.regions) << c.sum;
    const NamedTensors inputs = random_inputs(model, {});
    CompileOptions unfused;
    unfused.fuse = false;
    Session session(program), plain(compile(model, unfused));
    for (const Comparison& result : compare(session.run(inputs), plain.run(inputs), {1e-5, 1e-5})) {
      EXPECT_TRUE(result.passed) << c.sum << ": " << describe(result);
    }
  }
}

}  // namespace
}  // namespace redfuser::testing
