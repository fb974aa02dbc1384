// Regions grow over everything that the algebra takes, whatever the order of the nodes.
#include <gtest/gtest.h>

#include "fuse/alternatives.h"
#include "fuse/make_plan.h"
#include "fuse/regions.h"
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

}  // namespace
}  // namespace redfuser::testing
