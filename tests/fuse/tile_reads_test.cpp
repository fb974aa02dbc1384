// A contraction joins a region where it is a product of the region's tiles.
#include <gtest/gtest.h>

#include <functional>

#include "fuse/regions.h"
#include "fuse/tile_reads.h"
#include "support/graph_builder.h"

namespace redfuser::testing {
namespace {

constexpr int64_t kKeys = 24, kHead = 64;

// softmax(x·k + bias) · v with bias from p = x·r; the contractions inside the region.
int64_t owned_contractions(int64_t positions,
                           const std::function<ir::ValueId(GraphBuilder&, ir::ValueId p)>& bias) {
  GraphBuilder b;
  ir::ValueId x = b.input("x", DType::Float32, {kKeys, kHead});
  ir::ValueId k = b.input("k", DType::Float32, {kHead, kKeys});
  ir::ValueId v = b.input("v", DType::Float32, {kKeys, kHead});
  ir::ValueId r = b.input("r", DType::Float32, {kHead, positions});
  ir::ValueId p = b.node("MatMul", {x, r});
  ir::ValueId scores = b.node("Add", {b.node("MatMul", {x, k}), bias(b, p)});
  ir::ValueId axes = b.constant(integers({1}, {-1}));
  ir::ValueId e = b.node("Exp", {b.node("Sub", {scores, b.node("ReduceMax", {scores, axes})})});
  ir::ValueId weights = b.node("Div", {e, b.node("ReduceSum", {e, axes})});
  b.output(b.node("MatMul", {weights, v}));
  const fuse::NodeFacts facts(b.graph);
  const fuse::Regions regions = find_regions(facts, true);
  EXPECT_EQ(regions.fused.size(), 1u);
  if (regions.fused.size() != 1) return -1;
  EXPECT_EQ(regions.fused[0].region_class, "attention");
  const auto& owned = regions.fused[0].owned;
  return std::count_if(owned.begin(), owned.end(),
                       [&](ir::NodeId node) { return facts.contracts(node); });
}

// For the keys of a grid, a position per line: [keys, lines] at (i, j / 4).
ir::ValueId by_line(GraphBuilder& b, ir::ValueId p) {
  ir::ValueId lines = b.node("Unsqueeze", {p, b.constant(integers({1}, {2}))});
  ir::ValueId wide = b.node("Expand", {lines, b.constant(integers({3}, {kKeys, kKeys / 4, 4}))});
  return b.node("Reshape", {wide, b.constant(integers({2}, {kKeys, kKeys}))});
}

ir::ValueId by_data(GraphBuilder& b, ir::ValueId p) {
  ir::ValueId at = b.input("at", DType::Int64, {kKeys, kKeys});
  return b.node("GatherElements", {p, at}, {{"axis", int64_t{1}}});
}

// Positions are distances, limited to eight either way.
ir::ValueId by_distance(GraphBuilder& b, ir::ValueId p) {
  ir::ValueId zero = b.constant(integers({}, {0})), one = b.constant(integers({}, {1}));
  ir::ValueId i = b.node("Range", {zero, b.constant(integers({}, {kKeys})), one});
  ir::ValueId row = b.node("Unsqueeze", {i, b.constant(integers({1}, {1}))});
  ir::ValueId distance = b.node("Sub", {i, row});
  ir::ValueId low = b.constant(integers({}, {-8})), high = b.constant(integers({}, {8}));
  ir::ValueId near = b.node("Add", {b.node("Clip", {distance, low, high}), high});
  return b.node("GatherElements", {p, near}, {{"axis", int64_t{1}}});
}

TEST(TileReads, AContractionOfTheTilesJoins) {
  EXPECT_EQ(
      owned_contractions(kKeys, [](GraphBuilder& b, ir::ValueId p) { return b.node("Tanh", {p}); }),
      3);
}

TEST(TileReads, OneThatTilesShareStaysAProduct) {
  EXPECT_EQ(owned_contractions(kKeys / 4, by_line), 2);
  EXPECT_EQ(owned_contractions(32, by_data), 2);
  EXPECT_EQ(owned_contractions(17, by_distance), 2);
}

// Indices of one dimension that is read along an axis j of 12 elements, beside a row i.
TEST(TileReads, IndicesThatTakeEachElementOnce) {
  ir::ExprPool pool;
  ir::Expr n = pool.symbol("n");
  ir::Expr j = pool.axis("j", pool.integer(12)), i = pool.axis("i", n);
  auto number = [&](int64_t value) { return pool.integer(value); };
  auto times = [&](int64_t factor, ir::Expr e) { return pool.mul(number(factor), e); };
  auto low = [&](ir::Expr e) { return pool.make(ir::ExprOp::Max, {e, number(0)}); };
  struct Case {
    const char* name;
    std::vector<ir::Expr> indices;
    bool once;
  };
  const Case cases[] = {
      {"a row alone", {i}, true},
      {"the axis", {i, j}, true},
      {"shifted and limited", {low(pool.sub(j, number(3)))}, true},
      {"every third", {pool.add(times(3, j), number(1))}, true},
      {"last of a merged dimension", {pool.add(times(12, i), j)}, true},
      {"its digits", {pool.floordiv(j, number(4)), i, pool.floormod(j, number(4))}, true},
      {"a digit only", {i, pool.floordiv(j, number(4))}, false},
      {"another digit only", {i, pool.floormod(j, number(4))}, false},
      {"a distance", {low(pool.sub(j, i))}, false},
      {"rows that overlap", {pool.add(times(6, i), j)}, false},
      {"data", {i, pool.read(1, DType::Int64, {j})}, false},
      {"shifted by data", {pool.add(j, pool.read(1, DType::Int64, {number(0)}))}, false},
  };
  for (const Case& c : cases) {
    cascade::Cascade cascade;
    cascade.stream = j;
    cascade.rows = {i};
    cascade::Stage stage;
    stage.body = pool.read(7, DType::Float32, c.indices);
    cascade.stages.push_back(stage);
    EXPECT_EQ(fuse::reads_as_tile(pool, cascade, 7), c.once) << c.name;
    EXPECT_TRUE(fuse::reads_as_tile(pool, cascade, 8)) << c.name;
  }
}

}  // namespace
}  // namespace redfuser::testing
