// Both pipelines: fixed points, logs, and work that grows with the nodes.
#include <gtest/gtest.h>

#include "passes/pipeline.h"
#include "support/pass_case.h"

namespace redfuser::testing {
namespace {

TEST_F(Passes, PipelineReachesAFixedPointAndLogs) {
  ir::ValueId x = input({2, 2});
  ir::ValueId one = b.node("Exp", {b.constant(floats({}, {0}))});
  ir::ValueId left = b.node("Relu", {b.node("Mul", {x, one})});
  ir::ValueId right = b.node("Relu", {b.node("Identity", {x})});
  named_output(b.node("Add", {left, right}), "y");
  const std::vector<Tensor> inputs = seeded_inputs(b.graph), before = outputs_of(b.graph, inputs);
  std::vector<passes::PassRecord> log;
  optimize(b.graph, &log);
  expect_same_values(outputs_of(b.graph, inputs), before, b.graph);
  EXPECT_EQ(operators(b.graph), (Ops{"Relu", "Add"}));
  ASSERT_FALSE(log.empty());
  EXPECT_EQ(log.front().nodes_before, 6);
  EXPECT_EQ(log.back().nodes_after, 2);
  log.clear();
  optimize(b.graph, &log);
  EXPECT_TRUE(log.empty());
}

// Expressions that optimize() makes for a chain of so many nodes, and the passes that changed it.
std::pair<double, size_t> work_on_chain(int count) {
  GraphBuilder b;
  ir::ValueId y = b.input("x", DType::Float32, {-1, 4});
  for (int i = 0; i < count; ++i) {
    y = i % 4 == 0 ? b.node("Identity", {y})
                   : b.node("Add", {y, b.constant(floats({}, {1.0f * static_cast<float>(i)}))});
  }
  b.output(y);
  const size_t before = b.graph.pool->size();
  std::vector<passes::PassRecord> log;
  optimize(b.graph, &log);
  EXPECT_EQ(b.graph.nodes.size(), static_cast<size_t>(count) * 3 / 4);
  return {static_cast<double>(b.graph.pool->size() - before), log.size()};
}

TEST_F(Passes, WorkIsLinearInTheNodes) {
  const auto [small, small_passes] = work_on_chain(500);
  const auto [large, large_passes] = work_on_chain(4000);
  EXPECT_GT(small, 0);
  EXPECT_LE(large, 8.4 * small);
  EXPECT_EQ(large_passes, small_passes);
}

TEST_F(Passes, PipelineForExecutionLogsItsPasses) {
  ir::ValueId x = input({2, 3});
  std::vector<int64_t> counted(100);
  for (size_t i = 0; i < counted.size(); ++i) counted[i] = static_cast<int64_t>(i);
  named_output(b.node("Cast", {b.constant(integers({100}, counted))}, {{"to", int64_t{1}}}), "at");
  for (const char* name : {"p", "q"}) {
    const ir::ValueId weight = b.constant(floats({3, 2}, {1, 2, 3, 4, 5, 6}));
    named_output(b.node("Relu", {b.node("MatMul", {x, weight})}), name);
  }
  std::vector<passes::PassRecord> log;
  optimize_for_execution(b.graph, &log);
  std::vector<std::string> names;
  for (const passes::PassRecord& record : log) names.push_back(record.name);
  EXPECT_EQ(names, (Ops{"recover_index_expressions", "merge_products"}));
}

}  // namespace
}  // namespace redfuser::testing
