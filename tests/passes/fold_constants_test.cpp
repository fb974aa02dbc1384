// Nodes of constants, and shapes that follow from them.
#include <gtest/gtest.h>

#include "passes/passes.h"
#include "support/pass_case.h"

namespace redfuser::testing {
namespace {

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
      b.node("ScatterElements", {b.constant(integers({2}, {2, 4})), b.constant(integers({1}, {1})),
                                 b.constant(integers({1}, {6}))});
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

// Whatever its size, a constant under another shape needs no second storage.
TEST_F(Passes, ReshapedConstantsShareTheirStorage) {
  ir::ValueId big = b.constant(Tensor(DType::Float32, {3, 1 << 21, 1}));
  ir::ValueId shape = b.constant(integers({3}, {1 << 20, 1, 6}));
  named_output(b.node("Add", {input({1 << 20, 1, 6}), b.node("Reshape", {big, shape})}), "y");
  const void* storage = b.graph.values[big].constant.data();
  EXPECT_TRUE(passes::fold_constants(b.graph));
  EXPECT_EQ(operators(b.graph), Ops{"Add"});
  const Tensor& folded = b.graph.values[b.graph.nodes[0].inputs[1]].constant;
  EXPECT_EQ(folded.dims(), (Dims{1 << 20, 1, 6}));
  EXPECT_EQ(folded.data(), storage);
}

// A chain of folded nodes holds its last result alone.
TEST_F(Passes, ConstantsThatNothingReadsAreFreed) {
  ir::ValueId a = b.constant(floats({2, 2}, {1, 2, 3, 4}));
  ir::ValueId inner = b.node("Exp", {a}), shared = b.node("Neg", {inner});
  ir::ValueId last = b.node("Sqrt", {b.node("Exp", {shared})});
  named_output(b.node("Add", {input({2, 2}), last}), "y");
  named_output(b.node("Mul", {input({2, 2}), shared}), "z");
  EXPECT_TRUE(passes::fold_constants(b.graph));
  EXPECT_EQ(operators(b.graph), (Ops{"Add", "Mul"}));
  EXPECT_FALSE(b.graph.values[inner].is_constant());
  EXPECT_TRUE(b.graph.values[shared].is_constant());
  EXPECT_TRUE(b.graph.values[last].is_constant());
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

// The first state of a recurrent layer times its weights.
TEST_F(Passes, SumsOfConstantsAndIndexedValuesFold) {
  const ir::ValueId zeros = b.node("ConstantOfShape", {b.constant(integers({2}, {2, 300}))});
  std::vector<float> numbers(1200);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  const ir::ValueId product = b.node("MatMul", {zeros, b.constant(floats({300, 4}, numbers))});
  named_output(b.node("Add", {input({2, 4}), product}), "y");
  EXPECT_TRUE(run_pass(passes::fold_constants, b.graph));
  EXPECT_EQ(operators(b.graph), (Ops{"ConstantOfShape", "Add"}));
}

// Masks are not folded. Results that are larger than their inputs are computed in a run.
TEST_F(Passes, OtherNodesOfIndexedValuesAreNotFolded) {
  const ir::ValueId zeros = b.node("ConstantOfShape", {b.constant(integers({2}, {800, 3}))});
  const ir::ValueId matrix = b.constant(floats({3, 2}, {1, 2, 3, 4, 5, 6}));
  const ir::ValueId row = b.constant(floats({3}, {1, 2, 3}));
  b.output(b.node("Add", {input({800, 2}), b.node("MatMul", {zeros, matrix})}));
  named_output(b.node("Mul", {input({800, 3}), b.node("Add", {zeros, row})}), "y");
  EXPECT_FALSE(run_pass(passes::fold_constants, b.graph));
}

TEST_F(Passes, NodesWithRunTimeInputsAreNotFolded) {
  named_output(b.node("Add", {input(), b.constant(floats({4}, {1, 2, 3, 4}))}), "y");
  EXPECT_FALSE(run_pass(passes::fold_constants, b.graph));
}

}  // namespace
}  // namespace redfuser::testing
