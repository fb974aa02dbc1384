// A concatenation whose parts are used apart.
#include <gtest/gtest.h>

#include "passes/passes.h"
#include "support/pass_case.h"

namespace redfuser::testing {
namespace {

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

// Sizes beside the axis agree in a run, but not by their expressions: results for a part would have
// other shapes.
TEST_F(Passes, ConcatenationStaysWhereSizesBesideTheAxisDiffer) {
  auto cut = [&](ir::ValueId value, int64_t end, int64_t axis) {
    return b.node("Slice", {value, b.constant(integers({1}, {0})), b.constant(integers({1}, {end})),
                            b.constant(integers({1}, {axis}))});
  };
  const ir::ValueId few = cut(input({-1, 1}), 100, 0);  // min(s0, 100) rows
  const ir::ValueId joined = b.node("Concat", {input({-1, 4}), few}, {{"axis", int64_t{1}}});
  const ir::ValueId most = b.node("ReduceSum", {joined, b.constant(integers({1}, {1}))});
  named_output(b.node("Tanh", {cut(b.node("Sub", {joined, most}), 4, 1)}), "y");
  EXPECT_FALSE(run_pass(passes::split_concatenation, b.graph));
}

}  // namespace
}  // namespace redfuser::testing
