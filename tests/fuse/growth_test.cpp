// Regions grow over everything that the algebra takes, whatever the order of the nodes.
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace redfuser::testing
