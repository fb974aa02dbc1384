// Positions of nonzero elements that are known without the elements.
#include <gtest/gtest.h>

#include "passes/passes.h"
#include "support/pass_case.h"

namespace redfuser::testing {
namespace {

class NonZeroIndices : public Passes {
 protected:
  // Ones of the sizes of an input, and their positions as the output.
  void ones_of(const Dims& dims, float one) {
    const ir::ValueId x = input(dims);
    named_output(b.node("NonZero", {b.node("ConstantOfShape", {b.node("Shape", {x})},
                                           {{"value", floats({1}, {one})}})}),
                 "y");
    b.output(b.node("Relu", {x}));
  }
  bool has(const std::string& op) const {
    const Ops ops = operators(b.graph);
    return std::count(ops.begin(), ops.end(), op) > 0;
  }
};

TEST_F(NonZeroIndices, OfOnesAreFunctionsOfTheirNumbers) {
  for (const Dims& dims : std::vector<Dims>{{-1}, {-1, 4}, {3, -1, 2}, {-1, 1, -2}, {0, -1}}) {
    SCOPED_TRACE(dims.size());
    b = GraphBuilder();
    ones_of(dims, 2.5f);
    EXPECT_TRUE(run_pass(passes::nonzero_indices, b.graph));
    EXPECT_FALSE(has("NonZero"));
  }
}

TEST_F(NonZeroIndices, OfZerosStay) {
  ones_of({-1, 4}, 0);
  EXPECT_FALSE(run_pass(passes::nonzero_indices, b.graph));
}

TEST_F(NonZeroIndices, OfDataStay) {
  named_output(b.node("NonZero", {b.node("Exp", {input()})}), "y");
  EXPECT_FALSE(run_pass(passes::nonzero_indices, b.graph));
}

// Sizes behind the positions are those of the axis.
TEST_F(NonZeroIndices, GiveTheirCountToReaders) {
  const ir::ValueId x = input({-1, 4});
  const ir::ValueId rows = b.node("Slice", {b.node("Shape", {x}), b.constant(integers({1}, {0})),
                                            b.constant(integers({1}, {1}))});
  const ir::ValueId ones = b.node("ConstantOfShape", {rows}, {{"value", integers({1}, {1})}});
  const ir::ValueId at =
      b.node("Squeeze", {b.node("NonZero", {ones}), b.constant(integers({1}, {0}))});
  named_output(b.node("Gather", {x, at}), "y");
  EXPECT_TRUE(run_pass(passes::nonzero_indices, b.graph));
  EXPECT_EQ(b.graph.values[b.graph.outputs[0]].shape, b.graph.values[x].shape);
}

}  // namespace
}  // namespace redfuser::testing
