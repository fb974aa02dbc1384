// Nodes that are identities, equal to others, or used by none.
#include <gtest/gtest.h>

#include "passes/passes.h"
#include "support/pass_case.h"

namespace redfuser::testing {
namespace {

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

}  // namespace
}  // namespace redfuser::testing
