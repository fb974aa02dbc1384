#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "base/deferred_contents.h"
#include "base/dispatch.h"
#include "ir/evaluate.h"
#include "ops/lowering.h"
#include "passes/column_concat.h"
#include "passes/passes.h"
#include "passes/pipeline.h"
#include "support/graph_values.h"

namespace redfuser::testing {
namespace {

std::vector<std::string> output_names(const ir::Graph& graph) {
  std::vector<std::string> names;
  for (const ir::ValueId id : graph.outputs) names.push_back(graph.values[id].name);
  return names;
}

// Runs a pass, verifies, and checks that the outputs keep their names and values, and that a second
// run changes nothing.
bool run_pass(bool (*pass)(ir::Graph&), ir::Graph& graph) {
  verify(graph);
  const std::vector<Tensor> inputs = seeded_inputs(graph), before = outputs_of(graph, inputs);
  const std::vector<std::string> names = output_names(graph);
  bool changed = pass(graph);
  verify(graph);
  EXPECT_EQ(output_names(graph), names);
  expect_same_values(outputs_of(graph, inputs), before, graph);
  EXPECT_FALSE(pass(graph)) << to_string(graph);
  verify(graph);
  return changed;
}

std::vector<std::string> operators(const ir::Graph& graph) {
  std::vector<std::string> names;
  for (const ir::Node& node : graph.nodes) names.push_back(node.op);
  return names;
}
using Ops = std::vector<std::string>;

class Passes : public ::testing::Test {
 protected:
  ir::ValueId input(const Dims& dims = {-1, 4}) {
    return b.input(fmt::format("x{}", b.graph.inputs.size()), DType::Float32, dims);
  }
  ir::ValueId named_output(ir::ValueId id, const std::string& name) {
    b.graph.values[id].name = name;
    b.output(id);
    return id;
  }
  GraphBuilder b;
};

// split_concatenation

TEST_F(Passes, ConcatenationIsSplitWhereAPartLeavesIt) {
  ir::ValueId a = b.node("Exp", {input({3, 4})}), c = b.node("Exp", {input({3, 1})});
  ir::ValueId joined = b.node("Concat", {a, c}, {{"axis", int64_t{1}}});
  ir::ValueId total = b.node("ReduceSum", {joined, b.constant(integers({1}, {1}))});
  ir::ValueId ratio = b.node("Div", {joined, total});
  named_output(b.node("Tanh", {b.node("Slice", {ratio, b.constant(integers({1}, {0})),
                                                b.constant(integers({1}, {-1})),
                                                b.constant(integers({1}, {1}))})}),
               "y");
  EXPECT_TRUE(run_pass(passes::split_concatenation, b.graph));
  passes::eliminate_dead(b.graph);
  EXPECT_EQ(operators(b.graph),
            (Ops{"Exp", "Exp", "ReduceSum", "ReduceSum", "Add", "Div", "Tanh"}));
}

// Its meaning decides, whatever it is called.
TEST_F(Passes, ConcatenationOfAnotherNameIsSplit) {
  ir::ValueId joined = b.node("Concat", {input({3, 4}), input({3, 1})}, {{"axis", int64_t{-1}}});
  b.graph.nodes.back().op = "Beside";
  ir::ValueId part =
      b.node("Slice", {b.node("Exp", {joined}), b.constant(integers({1}, {0})),
                       b.constant(integers({1}, {4})), b.constant(integers({1}, {1}))});
  named_output(b.node("Tanh", {part}), "y");
  EXPECT_TRUE(run_pass(passes::split_concatenation, b.graph));
  passes::eliminate_dead(b.graph);
  EXPECT_EQ(operators(b.graph), (Ops{"Exp", "Tanh"}));
}

TEST_F(Passes, ConcatenationStaysWhereItIsUsedWhole) {
  ir::ValueId joined = b.node("Concat", {input({3, 4}), input({3, 1})}, {{"axis", int64_t{1}}});
  ir::ValueId part =
      b.node("Slice", {joined, b.constant(integers({1}, {0})), b.constant(integers({1}, {4})),
                       b.constant(integers({1}, {1}))});
  named_output(b.node("Tanh", {part}), "y");
  named_output(b.node("Transpose", {joined}, {{"perm", std::vector<int64_t>{1, 0}}}), "z");
  EXPECT_FALSE(run_pass(passes::split_concatenation, b.graph));
}

// eliminate_identity

TEST_F(Passes, IdentityIsRemovedAndTheOutputKeepsItsName) {
  ir::ValueId x = b.node("Relu", {input()});
  ir::ValueId y = b.node("Identity", {b.node("Identity", {x})});
  named_output(y, "y");
  EXPECT_TRUE(run_pass(passes::eliminate_identity, b.graph));
  EXPECT_EQ(operators(b.graph), Ops{"Relu"});
}

TEST_F(Passes, IdentityComesInManyForms) {
  ir::ValueId x = input({3, 4});
  ir::ValueId start = b.node("Exp", {x});
  ir::ValueId y = b.node("Cast", {start}, {{"to", int64_t{1}}});
  y = b.node("Reshape", {y, b.constant(integers({2}, {3, 4}))});
  y = b.node("Mul", {y, b.constant(floats({}, {1}))});
  y = b.node("Transpose", {y}, {{"perm", std::vector<int64_t>{0, 1}}});
  y = b.node("Expand", {y, b.constant(integers({2}, {1, 4}))});
  y = b.node("Slice", {y, b.constant(integers({1}, {0})), b.constant(integers({1}, {100}))});
  y = b.node("Concat", {y}, {{"axis", int64_t{0}}});
  named_output(b.node("Tanh", {y}), "y");
  EXPECT_TRUE(run_pass(passes::eliminate_identity, b.graph));
  EXPECT_EQ(operators(b.graph), (Ops{"Exp", "Tanh"}));
  EXPECT_EQ(b.graph.nodes[1].inputs[0], start);
}

TEST_F(Passes, IdentityKeepsWhatChangesTypeShapeOrOrder) {
  ir::ValueId x = b.node("Exp", {input({4, 4})});
  named_output(b.node("Transpose", {x}, {{"perm", std::vector<int64_t>{1, 0}}}), "a");
  named_output(b.node("Cast", {x}, {{"to", int64_t{10}}}), "b");
  named_output(b.node("Reshape", {x, b.constant(integers({1}, {16}))}), "c");
  named_output(b.node("Mul", {x, b.constant(floats({}, {2}))}), "d");
  EXPECT_FALSE(run_pass(passes::eliminate_identity, b.graph));
}

TEST_F(Passes, IdentityBetweenInputAndOutputStays) {
  named_output(b.node("Identity", {input()}), "y");
  EXPECT_FALSE(run_pass(passes::eliminate_identity, b.graph));
}

TEST_F(Passes, IdentityOfAnotherOutputStays) {
  ir::ValueId x = named_output(b.node("Relu", {input()}), "x");
  named_output(b.node("Identity", {x}), "y");
  EXPECT_FALSE(run_pass(passes::eliminate_identity, b.graph));
}

// eliminate_common

TEST_F(Passes, CommonNodesAndConstantsMerge) {
  ir::ValueId x = input();
  ir::ValueId left = b.node("Add", {x, b.constant(floats({4}, {1, 2, 3, 4}))});
  ir::ValueId right = b.node("Add", {x, b.constant(floats({4}, {1, 2, 3, 4}))});
  ir::ValueId y = b.node("Mul", {b.node("Exp", {left}), b.node("Exp", {right})});
  named_output(y, "y");
  EXPECT_TRUE(run_pass(passes::eliminate_common, b.graph));
  EXPECT_EQ(operators(b.graph), (Ops{"Add", "Exp", "Mul"}));
  EXPECT_EQ(b.graph.nodes[2].inputs[0], b.graph.nodes[2].inputs[1]);
}

TEST_F(Passes, CommonKeepsDifferences) {
  ir::ValueId x = input();
  ir::ValueId a = b.node("Concat", {x, x}, {{"axis", int64_t{0}}});
  ir::ValueId c = b.node("Concat", {x, x}, {{"axis", int64_t{1}}});
  named_output(a, "a");
  named_output(c, "c");
  named_output(b.node("Add", {x, b.constant(floats({4}, {1, 2, 3, 4}))}), "d");
  named_output(b.node("Add", {x, b.constant(floats({4}, {1, 2, 3, 5}))}), "e");
  EXPECT_FALSE(run_pass(passes::eliminate_common, b.graph));
}

TEST_F(Passes, CommonOutputsKeepTheirNames) {
  ir::ValueId x = input();
  named_output(b.node("Exp", {b.node("Neg", {x})}), "first");
  named_output(b.node("Exp", {b.node("Neg", {x})}), "second");
  EXPECT_TRUE(run_pass(passes::eliminate_common, b.graph));
  EXPECT_EQ(operators(b.graph), (Ops{"Neg", "Exp", "Exp"}));
}

TEST_F(Passes, CommonSizesKnownAtRunTimeBecomeOne) {
  ir::ValueId x = input();
  ir::ValueId left = b.node("NonZero", {x}), right = b.node("NonZero", {x});
  EXPECT_NE(b.graph.values[left].shape, b.graph.values[right].shape);
  ir::ValueId y = b.node("Neg", {right});
  named_output(left, "left");
  named_output(y, "y");
  EXPECT_TRUE(run_pass(passes::eliminate_common, b.graph));
  EXPECT_EQ(b.graph.values[y].shape, b.graph.values[left].shape);
}

// eliminate_dead

TEST_F(Passes, DeadNodesAndValuesGo) {
  ir::ValueId x = input();
  b.node("Exp", {b.node("Add", {x, b.constant(floats({}, {3}))})});
  named_output(b.node("Neg", {x}), "y");
  EXPECT_TRUE(run_pass(passes::eliminate_dead, b.graph));
  EXPECT_EQ(operators(b.graph), Ops{"Neg"});
  EXPECT_EQ(b.graph.values.size(), 2u);
}

TEST_F(Passes, DeadKeepsUnusedInputsAndSecondOutputs) {
  ir::ValueId x = input({3, 8});
  input();
  ir::ValueId values = b.node("TopK", {x, b.constant(integers({1}, {2}))}, {}, 2);
  named_output(values + 1, "indices");
  EXPECT_FALSE(run_pass(passes::eliminate_dead, b.graph));
  EXPECT_EQ(b.graph.inputs.size(), 2u);
}

// fold_constants

TEST_F(Passes, ConstantsFoldThroughChains) {
  ir::ValueId a = b.constant(floats({2, 2}, {1, 2, 3, 4})),
              one = b.constant(floats({2, 2}, {1, 1, 1, 1}));
  ir::ValueId sum = b.node("Add", {a, one});
  ir::ValueId total =
      b.node("ReduceSum", {b.node("Transpose", {sum}), b.constant(integers({1}, {1}))},
             {{"keepdims", int64_t{0}}});
  named_output(b.node("Add", {input({2}), total}), "y");
  EXPECT_TRUE(run_pass(passes::fold_constants, b.graph));
  EXPECT_EQ(operators(b.graph), Ops{"Add"});
  const ir::Value& folded = b.graph.values[b.graph.nodes[0].inputs[1]];
  ASSERT_TRUE(folded.is_constant());
  EXPECT_EQ(values_of(folded.constant), (std::vector<double>{6, 8}));
}

TEST_F(Passes, ConstantsFoldThroughOpaqueOperators) {
  ir::Attributes attributes{{"axis", int64_t{0}}};
  ir::ValueId x = b.constant(floats({4}, {4, 2, 4, 8}));
  ir::ValueId y = b.node("CumSum", {x, b.constant(integers({}, {0}))});
  named_output(y, "y");
  EXPECT_TRUE(run_pass(passes::fold_constants, b.graph));
  EXPECT_TRUE(b.graph.nodes.empty());
  EXPECT_EQ(values_of(b.graph.values[b.graph.outputs[0]].constant),
            (std::vector<double>{4, 6, 10, 18}));
}

// A shape that only a kernel can compute becomes known once it is folded.
TEST_F(Passes, FoldedShapesAreInferredAgain) {
  ir::ValueId shape =
      b.node("CumSum", {b.constant(integers({2}, {2, 4})), b.constant(integers({}, {0}))});
  ir::ValueId y = b.node("Reshape", {input({12}), shape});
  ir::ValueId z = b.node("Exp", {y});
  named_output(z, "z");
  ASSERT_FALSE(b.graph.values[z].shape[0]->is_constant());
  EXPECT_TRUE(run_pass(passes::fold_constants, b.graph));
  EXPECT_EQ(operators(b.graph), (Ops{"Reshape", "Exp"}));
  EXPECT_TRUE(b.graph.values[z].shape[0]->is_constant(2));
  EXPECT_TRUE(b.graph.values[z].shape[1]->is_constant(6));
}

TEST_F(Passes, CountsOfFoldedSelectionsAreKnown) {
  ir::ValueId found = b.node("NonZero", {b.constant(floats({4}, {0, 1, 0, 1}))});
  ir::ValueId rows = b.node("Gather", {input({4, 3}), found});
  named_output(rows, "rows");
  EXPECT_TRUE(run_pass(passes::fold_constants, b.graph));
  EXPECT_EQ(operators(b.graph), Ops{"Gather"});
  EXPECT_TRUE(b.graph.values[rows].shape[1]->is_constant(2));
}

TEST_F(Passes, IndexedAndHugeResultsAreNotFolded) {
  ir::ValueId mask =
      b.node("Range", {b.constant(integers({}, {0})), b.constant(integers({}, {4096})),
                       b.constant(integers({}, {1}))});
  ir::ValueId wide =
      b.node("Expand", {b.node("Exp", {b.constant(floats({100, 1}, std::vector<float>(100, 1)))}),
                        b.constant(integers({2}, {100, 50000}))});
  named_output(b.node("Cast", {mask}, {{"to", int64_t{1}}}), "mask");
  named_output(wide, "wide");
  EXPECT_TRUE(run_pass(passes::fold_constants, b.graph));
  EXPECT_EQ(operators(b.graph), (Ops{"Range", "Expand", "Cast"}));
}

TEST_F(Passes, NodesWithRunTimeInputsAreNotFolded) {
  named_output(b.node("Add", {input(), b.constant(floats({4}, {1, 2, 3, 4}))}), "y");
  EXPECT_FALSE(run_pass(passes::fold_constants, b.graph));
}

// The pipeline

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

// merge_products

class MergeProducts : public Passes {
 protected:
  // x · w + c, where `w` has three rows and `columns` columns of the same number.
  ir::ValueId linear(ir::ValueId x, int64_t columns, float number, bool biased) {
    const auto count = static_cast<size_t>(3 * columns);
    ir::ValueId y =
        b.node("MatMul", {x, b.constant(floats({3, columns}, std::vector<float>(count, number)))});
    if (!biased) return y;
    const std::vector<float> bias(static_cast<size_t>(columns), -number);
    return b.node("Add", {y, b.constant(floats({columns}, bias))});
  }
  bool merge() {
    for (ir::ValueId id : made) b.output(b.node("Tanh", {id}));
    verify(b.graph);
    return run_pass(passes::merge_products, b.graph);
  }
  std::vector<ir::ValueId> made;
};

TEST_F(MergeProducts, OneProductAndSlices) {
  ir::ValueId x = input({-1, 3});
  made = {linear(x, 2, 1, true), linear(x, 2, 2, false), linear(x, 3, 4, true)};
  EXPECT_TRUE(merge());
  EXPECT_EQ(operators(b.graph),
            (Ops{"MatMul", "Add", "Slice", "Slice", "Slice", "Tanh", "Tanh", "Tanh"}));
  const auto& product = b.graph.nodes[0];
  EXPECT_EQ(values_of(b.graph.values[product.inputs[1]].constant),
            (std::vector<double>{1, 1, 2, 2, 4, 4, 4, 1, 1, 2, 2, 4, 4, 4, 1, 1, 2, 2, 4, 4, 4}));
  EXPECT_EQ(values_of(b.graph.values[b.graph.nodes[1].inputs[1]].constant),
            (std::vector<double>{-1, -1, 0, 0, -4, -4, -4}));
  EXPECT_EQ(b.graph.values[b.graph.nodes[4].outputs[0]].shape.back(), b.graph.pool->integer(3));
}

TEST_F(MergeProducts, WeightsByRows) {
  ir::ValueId x = input({-1, 3});
  for (float number : {1.0f, 7.0f}) {
    ir::ValueId w = b.constant(floats({2, 3}, {number, number + 1, number + 2, 0, 1, 2}));
    made.push_back(b.node("Gemm", {x, w}, {{"transB", int64_t{1}}}));
  }
  EXPECT_TRUE(merge());
  EXPECT_EQ(values_of(b.graph.values[b.graph.nodes[0].inputs[1]].constant),
            (std::vector<double>{1, 0, 7, 0, 2, 1, 8, 1, 3, 2, 9, 2}));
}

// Rows of 2, 3 and 1 elements; every range of bytes is what the whole has there.
TEST(ColumnConcat, WritesAnyPieceOfTheWhole) {
  const Tensor whole = passes::column_concat(
      4, {{floats({4, 2}, {0, 1, 10, 11, 20, 21, 30, 31}), false, 2},
          {floats({3, 4}, {2, 12, 22, 32, 3, 13, 23, 33, 4, 14, 24, 34}), true, 3},
          {floats({4, 1}, {5, 15, 25, 35}), false, 1}});
  std::vector<float> expected;
  for (int row = 0; row < 4; ++row) {
    for (int column = 0; column < 6; ++column) {
      expected.push_back(static_cast<float>(10 * row + column));
    }
  }
  ASSERT_EQ(whole.dims(), (Dims{4, 6}));
  for (size_t begin = 0; begin < expected.size(); ++begin) {
    for (size_t end = begin; end <= expected.size(); ++end) {
      std::vector<float> piece(end - begin);
      whole.contents()->write(4 * begin, 4 * piece.size(), reinterpret_cast<char*>(piece.data()));
      EXPECT_EQ(piece, std::vector<float>(expected.begin() + static_cast<long>(begin),
                                          expected.begin() + static_cast<long>(end)));
    }
  }
  const Tensor copy = whole.reshaped({24});
  EXPECT_EQ(std::vector<float>(copy.as<float>(), copy.as<float>() + 24), expected);
  EXPECT_EQ(copy.data(), whole.data());
}

TEST_F(MergeProducts, WeightsArePutTogetherWhenTheyAreWanted) {
  ir::ValueId x = input({-1, 3});
  made = {linear(x, 2, 1, false), linear(x, 2, 2, false)};
  EXPECT_TRUE(merge());
  EXPECT_NE(b.graph.values[b.graph.nodes[0].inputs[1]].constant.contents(), nullptr);
}

TEST_F(MergeProducts, KeepsWhatIsApart) {
  ir::ValueId x = input({-1, 3}), z = input({-1, 3}), w = input({3, 2});
  b.output(linear(x, 2, 1, true));    // the caller reads it whole
  made = {linear(x, 2, 2, false),     // alone
          linear(z, 2, 3, true),      // another matrix
          b.node("MatMul", {x, w})};  // no constant
  EXPECT_FALSE(merge());
}

// recover_index_expressions

class ExpressConstants : public Passes {
 protected:
  // x + c with c[0, i, j] = f(i, j), and whether the constant became an expression with the same
  // elements.
  bool expressed(const std::function<float(int64_t, int64_t)>& f) {
    constexpr int64_t kRows = 72, kColumns = 80;
    b = GraphBuilder();
    std::vector<float> numbers;
    for (int64_t i = 0; i < kRows; ++i) {
      for (int64_t j = 0; j < kColumns; ++j) numbers.push_back(f(i, j));
    }
    ir::ValueId x = b.input("x", DType::Float32, {2, kRows, kColumns});
    b.output(b.node("Add", {x, b.constant(floats({1, kRows, kColumns}, numbers))}));
    if (!run_pass(passes::recover_index_expressions, b.graph)) return false;
    const ir::Node& add = b.graph.nodes.back();
    const ir::ValueId constant = add.inputs[1];
    EXPECT_TRUE(b.graph.values[constant].indexed) << to_string(b.graph);
    ir::ExprPool& pool = *b.graph.pool;
    for (const auto& [i, j] : {std::pair<int64_t, int64_t>{0, 0},
                               {0, 1},
                               {1, 0},
                               {5, 9},
                               {9, 5},
                               {63, 0},
                               {0, 79},
                               {63, 79}}) {
      ops::Lowering lowering(b.graph, [](ir::ValueId) { return true; });
      ir::Expr e = lowering.element(constant, {pool.integer(0), pool.integer(i), pool.integer(j)});
      EXPECT_EQ(evaluate(e, [](ir::Expr) { return 0.0; }), f(i, j)) << i << " " << j;
    }
    return true;
  }
};

TEST_F(ExpressConstants, NumbersByDistance) {
  EXPECT_TRUE(expressed([](int64_t, int64_t) { return 0.0f; }));
  EXPECT_TRUE(expressed([](int64_t i, int64_t j) { return j <= i ? 0 : -INFINITY; }));
  EXPECT_TRUE(expressed([](int64_t i, int64_t j) { return j <= i + 3 ? 0 : -1e4f; }));
  EXPECT_TRUE(expressed([](int64_t i, int64_t j) { return j >= i ? 7 : 8; }));
  EXPECT_TRUE(expressed([](int64_t i, int64_t j) { return i - j < 5 && j <= i ? 0 : -INFINITY; }));
  EXPECT_TRUE(expressed([](int64_t i, int64_t j) { return i == j ? 1 : 0; }));
}

TEST_F(ExpressConstants, OtherConstantsStay) {
  EXPECT_FALSE(expressed([](int64_t i, int64_t j) { return j <= i ? 0 : j; }));
  EXPECT_FALSE(expressed([](int64_t i, int64_t j) { return j <= i && j != 3 ? 0 : 1; }));
  EXPECT_FALSE(expressed([](int64_t, int64_t j) { return j < 40 ? 0 : 1; }));
  EXPECT_FALSE(expressed([](int64_t i, int64_t j) { return (i + j) % 2; }));
}

class ExpressPositions : public Passes {
 protected:
  // x + c, as above, with c[i, 0, j] = f(i, j) of any dtype.
  bool expressed(DType dtype, const std::function<double(int64_t, int64_t)>& f, int64_t rows = 1) {
    constexpr int64_t kColumns = 80;
    b = GraphBuilder();
    Tensor tensor(dtype, {rows, 1, kColumns});
    dispatch(dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (int64_t i = 0; i < rows * kColumns; ++i) {
        static_cast<T*>(tensor.mutable_data())[i] = static_cast<T>(f(i / kColumns, i % kColumns));
      }
    });
    ir::ValueId x = b.input("x", dtype, {rows, 1, kColumns});
    ir::ValueId constant = b.constant(tensor);
    b.output(b.node("Add", {x, b.node("Neg", {constant})}));
    if (!run_pass(passes::recover_index_expressions, b.graph)) return false;
    const ir::ValueId negated = b.graph.nodes.back().inputs[1];
    EXPECT_TRUE(b.graph.values[negated].indexed) << to_string(b.graph);
    ir::ExprPool& pool = *b.graph.pool;
    for (const int64_t j : {0, 1, 2, 41, 79}) {
      ops::Lowering lowering(b.graph, [](ir::ValueId) { return true; });
      ir::Expr e =
          lowering.element(negated, {pool.integer(rows - 1), pool.integer(0), pool.integer(j)});
      EXPECT_EQ(evaluate(e, [](ir::Expr) { return 0.0; }), -f(rows - 1, j)) << j;
    }
    return true;
  }
};

TEST_F(ExpressPositions, EvenSteps) {
  EXPECT_TRUE(expressed(DType::Int64, [](int64_t, int64_t j) { return j; }));
  EXPECT_TRUE(expressed(DType::Int32, [](int64_t, int64_t j) { return 5 - 3 * j; }));
  EXPECT_TRUE(expressed(DType::Float32, [](int64_t, int64_t j) { return 79 - j; }));
  EXPECT_TRUE(expressed(
      DType::Int64, [](int64_t, int64_t j) { return 2 + j; }, 3));
}

TEST_F(ExpressPositions, OtherConstantsStay) {
  EXPECT_FALSE(expressed(DType::Int64, [](int64_t, int64_t j) { return j == 79 ? 0 : j; }));
  EXPECT_FALSE(
      expressed(DType::Float32, [](int64_t, int64_t j) { return 0.5 * static_cast<double>(j); }));
  EXPECT_FALSE(expressed(
      DType::Int64, [](int64_t i, int64_t j) { return i + j; }, 3));
  EXPECT_FALSE(expressed(DType::Int64, [](int64_t, int64_t) { return 7; }));
  EXPECT_FALSE(expressed(DType::Float64,
                         [](int64_t, int64_t j) { return j * static_cast<double>(1ll << 45); }));
}

TEST_F(ExpressConstants, WeightsStay) {
  ir::ValueId x = input({4, 64});
  const std::vector<float> ones(64 * 64, 1);
  named_output(b.node("MatMul", {x, b.constant(floats({64, 64}, ones))}), "y");
  EXPECT_FALSE(run_pass(passes::recover_index_expressions, b.graph));
}

}  // namespace
}  // namespace redfuser::testing
