// Lowerings that keep what earlier ones read and gave.
#include "ops/lowering.h"

#include <random>

#include "support/ops_case.h"

namespace redfuser::testing {
namespace {

// Nodes over [s0,6] that read each other, some of them transposed back and forth or reduced.
GraphBuilder drawn_graph(std::mt19937& random) {
  GraphBuilder b;
  std::vector<ir::ValueId> values = {b.input("x", DType::Float32, {-1, 6}),
                                     b.input("y", DType::Float32, {-1, 6}),
                                     b.constant(floats({1, 6}, {1, 2, 3, 4, 5, 6}))};
  const auto any = [&] { return values[random() % values.size()]; };
  const ir::Attributes swap{{"perm", std::vector<int64_t>{1, 0}}};
  for (int i = 0; i < 12; ++i) {
    ir::ValueId value = b.node(random() % 2 ? "Add" : "Mul", {any(), any()});
    if (random() % 4 == 0) value = b.node("Transpose", {b.node("Transpose", {value}, swap)}, swap);
    if (random() % 4 == 0) {
      value = b.node("ReduceSum", {value, b.constant(integers({1}, {1}))});
    }
    values.push_back(value);
  }
  return b;
}

TEST(Lowering, AMemoServesAnyInlinedValues) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937 random(seed);
    const GraphBuilder b = drawn_graph(random);
    ops::LoweringMemo memo;
    for (int trial = 0; trial < 20; ++trial) {
      std::set<ir::ValueId> chosen;
      for (size_t id = 0; id < b.graph.values.size(); ++id) {
        if (random() % 3 != 0) chosen.insert(static_cast<ir::ValueId>(id));
      }
      const auto inlined = [&](ir::ValueId id) { return chosen.count(id) > 0; };
      ops::Lowering plain(b.graph, inlined), kept(b.graph, inlined, &memo);
      for (const ir::Node& node : b.graph.nodes) {
        const ir::ValueId output = node.outputs[0];
        const std::vector<ir::Expr> index = ops::shared_index(b.graph, output);
        EXPECT_EQ(kept.element(output, index), plain.element(output, index));
      }
    }
  }
}

}  // namespace
}  // namespace redfuser::testing
