// Replayed growth in repeated parts of a graph gives the same regions as growing each alone.
#include <gtest/gtest.h>

#include "fuse/region_replay.h"
#include "fuse/regions.h"
#include "support/graph_builder.h"

namespace redfuser::testing {
namespace {

struct Variant {
  const char* name;
  const char* tail = "Tanh";
  float epsilon = 1e-5f;
  int64_t axis = -1;
  bool publish_square = false, read_twice = false, mask = false;
  int64_t columns = 48;
};

constexpr Variant kVariants[] = {
    {"plain"},
    {"another operator", "Sigmoid"},
    {"another number", "Tanh", 1e-3f},
    {"another axis", "Tanh", 1e-5f, 0},
    {"an output inside", "Tanh", 1e-5f, -1, true},
    {"another reader", "Tanh", 1e-5f, -1, false, true},
    {"an operand more", "Tanh", 1e-5f, -1, false, false, true},
    {"another size", "Tanh", 1e-5f, -1, false, false, false, 40},
};

// tail(x / sqrt(mean(x²) + epsilon)).
void add_block(GraphBuilder& b, const Variant& v, ir::ValueId mask) {
  ir::ValueId x =
      b.input(fmt::format("x{}", b.graph.inputs.size()), DType::Float32, {-1, v.columns});
  if (v.mask) x = b.node("Mul", {x, mask});
  ir::ValueId square = b.node("Mul", {x, x});
  ir::ValueId mean = b.node("ReduceMean", {square, b.constant(integers({1}, {v.axis}))});
  ir::ValueId sum = b.node("Add", {mean, b.constant(floats({}, {v.epsilon}))});
  ir::ValueId scaled = b.node("Div", {x, b.node("Sqrt", {sum})});
  b.output(b.node(v.tail, {scaled}));
  if (v.publish_square) b.output(square);
  if (v.read_twice) b.output(b.node("Exp", {scaled}));
}

std::vector<std::string> regions_of(const std::vector<Variant>& blocks) {
  GraphBuilder b;
  ir::ValueId mask = b.input("mask", DType::Float32, {-1, 1});
  for (const Variant& block : blocks) add_block(b, block, mask);
  const fuse::NodeFacts facts(b.graph);
  const fuse::Regions regions = find_regions(facts, true);
  std::vector<std::string> texts;
  for (const fuse::Region& region : regions.fused) {
    std::string text = region.region_class + ":";
    for (const ir::NodeId node : region.owned) text += " " + b.graph.nodes[node].op;
    for (const ir::NodeId node : region.shared) text += " shared " + b.graph.nodes[node].op;
    texts.push_back(text + "\n" + fingerprint(region.extraction.cascade));
  }
  return texts;
}

TEST(RepeatedGrowth, FindsWhatGrowingAloneFinds) {
  const std::vector<std::string> plain = regions_of({kVariants[0]});
  ASSERT_EQ(plain.size(), 1u);
  for (const Variant& variant : kVariants) {
    std::vector<std::string> expected = plain;
    for (const std::string& region : plain) expected.push_back(region);
    for (const std::string& region : regions_of({variant})) expected.push_back(region);
    for (const std::string& region : plain) expected.push_back(region);
    EXPECT_EQ(regions_of({kVariants[0], kVariants[0], variant, kVariants[0]}), expected)
        << variant.name;
  }
}

TEST(RepeatedGrowth, MovesToEqualSurroundingsOnly) {
  for (const Variant& variant : kVariants) {
    GraphBuilder b;
    ir::ValueId mask = b.input("mask", DType::Float32, {-1, 1});
    add_block(b, kVariants[0], mask);
    const auto count = static_cast<ir::NodeId>(b.graph.nodes.size());
    add_block(b, variant, mask);
    const fuse::NodeFacts facts(b.graph);
    fuse::RegionTrace growth;
    growth.seed = growth.last_reduction = 1;
    for (ir::NodeId node = 0; node < count; ++node) {
      growth.owned.insert(node);
      growth.consulted.emplace(node, true);
    }
    const ir::NodeId seed = count + (variant.mask ? 2 : 1);
    const auto moved = replay_at(seed, growth, facts, {});
    EXPECT_EQ(moved.has_value(), &variant == &kVariants[0]) << variant.name;
    if (!moved) continue;
    EXPECT_EQ(*moved->owned.begin(), count);
    EXPECT_EQ(*moved->owned.rbegin(), 2 * count - 1);
    EXPECT_FALSE(replay_at(seed, growth, facts, {{count + 3}, {}})) << "a node is taken";
    const ir::ValueId square = b.graph.nodes[static_cast<size_t>(count)].outputs[0];
    EXPECT_FALSE(replay_at(seed, growth, facts, {{}, {square}})) << "a value is pinned";
  }
}

}  // namespace
}  // namespace redfuser::testing
