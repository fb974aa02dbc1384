// A contraction joins a region where it is a product of the region's tiles.
#include <gtest/gtest.h>

#include <functional>

#include "graph_builder.h"
#include "plan/regions.h"

namespace redfuser::testing {
namespace {

constexpr int64_t kKeys = 24, kHead = 64;

// softmax(x·k + bias) · v with bias from p = x·r; the contractions inside the region.
int64_t owned_contractions(int64_t positions,
                           const std::function<ValueId(GraphBuilder&, ValueId p)>& bias) {
  GraphBuilder b;
  ValueId x = b.input("x", DType::Float32, {kKeys, kHead});
  ValueId k = b.input("k", DType::Float32, {kHead, kKeys});
  ValueId v = b.input("v", DType::Float32, {kKeys, kHead});
  ValueId r = b.input("r", DType::Float32, {kHead, positions});
  ValueId p = b.node("MatMul", {x, r});
  ValueId scores = b.node("Add", {b.node("MatMul", {x, k}), bias(b, p)});
  ValueId axes = b.constant(integers({1}, {-1}));
  ValueId e = b.node("Exp", {b.node("Sub", {scores, b.node("ReduceMax", {scores, axes})})});
  ValueId weights = b.node("Div", {e, b.node("ReduceSum", {e, axes})});
  b.output(b.node("MatMul", {weights, v}));
  const GraphFacts facts(b.graph);
  const Regions regions = find_regions(facts, true);
  EXPECT_EQ(regions.fused.size(), 1u);
  if (regions.fused.size() != 1) return -1;
  EXPECT_EQ(regions.fused[0].region_class, "attention");
  const auto& owned = regions.fused[0].owned;
  return std::count_if(owned.begin(), owned.end(),
                       [&](NodeId node) { return facts.contracts(node); });
}

// For the keys of a grid, a position per line: [keys, lines] at (i, j / 4).
ValueId by_line(GraphBuilder& b, ValueId p) {
  ValueId lines = b.node("Unsqueeze", {p, b.constant(integers({1}, {2}))});
  ValueId wide = b.node("Expand", {lines, b.constant(integers({3}, {kKeys, kKeys / 4, 4}))});
  return b.node("Reshape", {wide, b.constant(integers({2}, {kKeys, kKeys}))});
}

ValueId by_data(GraphBuilder& b, ValueId p) {
  ValueId at = b.input("at", DType::Int64, {kKeys, kKeys});
  return b.node("GatherElements", {p, at}, {{"axis", int64_t{1}}});
}

// Positions are distances, limited to eight either way.
ValueId by_distance(GraphBuilder& b, ValueId p) {
  ValueId zero = b.constant(integers({}, {0})), one = b.constant(integers({}, {1}));
  ValueId i = b.node("Range", {zero, b.constant(integers({}, {kKeys})), one});
  ValueId row = b.node("Unsqueeze", {i, b.constant(integers({1}, {1}))});
  ValueId distance = b.node("Sub", {i, row});
  ValueId low = b.constant(integers({}, {-8})), high = b.constant(integers({}, {8}));
  ValueId near = b.node("Add", {b.node("Clip", {distance, low, high}), high});
  return b.node("GatherElements", {p, near}, {{"axis", int64_t{1}}});
}

TEST(TileReads, AContractionOfTheTilesJoins) {
  EXPECT_EQ(
      owned_contractions(kKeys, [](GraphBuilder& b, ValueId p) { return b.node("Tanh", {p}); }), 3);
}

TEST(TileReads, OneThatTilesShareStaysAProduct) {
  EXPECT_EQ(owned_contractions(kKeys / 4, by_line), 2);
  EXPECT_EQ(owned_contractions(32, by_data), 2);
  EXPECT_EQ(owned_contractions(17, by_distance), 2);
}

}  // namespace
}  // namespace redfuser::testing
