// Scales and shifts of channels that go into the weights of a convolution.
#include <gtest/gtest.h>

#include "passes/passes.h"
#include "support/pass_case.h"

namespace redfuser::testing {
namespace {

class FoldScales : public Passes {
 protected:
  ir::ValueId vector(const std::vector<float>& numbers) {
    return b.constant(floats({static_cast<int64_t>(numbers.size()), 1, 1}, numbers));
  }
  // Three filters over two channels.
  ir::ValueId convolution(bool biased, DType dtype = DType::Float32) {
    const ir::ValueId x = b.input(fmt::format("x{}", b.graph.inputs.size()), dtype, {-1, 2, 5, 6});
    std::vector<float> numbers;
    for (int i = 0; i < 3 * 2 * 3 * 3; ++i) numbers.push_back(static_cast<float>(i % 7) - 3);
    std::vector<ir::ValueId> inputs{x, b.constant(make_tensor(dtype, {3, 2, 3, 3}, numbers))};
    if (biased) inputs.push_back(b.constant(make_tensor<float>(dtype, {3}, {4, -2, 1})));
    return b.node("Conv", inputs, {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
  }
  bool fold(ir::ValueId last) {
    b.output(b.node("Relu", {last}));
    return run_pass(passes::fold_scales, b.graph);
  }
};

TEST_F(FoldScales, NormalizationByConstants) {
  for (const bool biased : {false, true}) {
    b = GraphBuilder();
    ir::ValueId y = b.node("Sub", {convolution(biased), vector({1, 2, -3})});
    y = b.node("Div", {y, vector({2, 4, 0.5})});
    y = b.node("Mul", {vector({3, -1, 0.25}), y});
    EXPECT_TRUE(fold(b.node("Add", {y, vector({5, 0, 7})})));
    EXPECT_EQ(operators(b.graph), (Ops{"Conv", "Relu"}));
    const std::vector<double> none{3.5, 0.5, 8.5}, some{9.5, 1, 9};
    EXPECT_EQ(values_of(b.graph.values[b.graph.nodes[0].inputs[2]].constant), biased ? some : none);
  }
}

TEST_F(FoldScales, FunctionsOfConstants) {
  const auto numbers = [&](const std::vector<float>& list) {
    return b.constant(floats({3}, list));
  };
  EXPECT_TRUE(fold(b.node("BatchNormalization",
                          {convolution(true), numbers({1, 2, -3}), numbers({3, 2, 1}),
                           numbers({0.5, 0, 2}), numbers({1, 4, 9})},
                          {}, 1, 15)));
  EXPECT_EQ(operators(b.graph), (Ops{"Conv", "Relu"}));
}

TEST_F(FoldScales, NumbersAndWideTypes) {
  const ir::ValueId half = b.constant(make_tensor<float>(DType::Float64, {}, {0.5}));
  ir::ValueId y = b.node("Sub", {half, convolution(true, DType::Float64)});
  EXPECT_TRUE(fold(b.node("Mul", {y, half})));
  EXPECT_EQ(operators(b.graph), (Ops{"Conv", "Relu"}));
}

TEST_F(FoldScales, StopsAtTheFirstThatIsNone) {
  ir::ValueId y = b.node("Mul", {convolution(false), vector({1, 2, 3})});
  y = b.node("Add", {y, input({3, 1, 1})});
  EXPECT_TRUE(fold(b.node("Mul", {y, vector({1, 2, 3})})));
  EXPECT_EQ(operators(b.graph), (Ops{"Conv", "Add", "Mul", "Relu"}));
}

TEST_F(FoldScales, KeepsWhatIsNoScale) {
  const ir::ValueId along = b.constant(floats({6}, {1, 2, 3, 4, 5, 6}));
  const ir::ValueId read_twice = convolution(false);
  b.output(b.node("Mul", {read_twice, vector({1, 2, 3})}));
  b.output(b.node("Exp", {read_twice}));
  const ir::ValueId output = convolution(false);
  b.output(output);
  b.output(b.node("Mul", {output, vector({1, 2, 3})}));
  const ir::ValueId square = convolution(false), inverse = convolution(false);
  b.output(b.node("Mul", {square, square}));
  b.output(b.node("Div", {vector({1, 2, 3}), inverse}));
  b.output(b.node("Div", {convolution(false), vector({1, 0, 3})}));
  b.output(b.node("Mul", {convolution(false, DType::Float16),
                          b.constant(make_tensor<float>(DType::Float16, {}, {3}))}));
  EXPECT_FALSE(fold(b.node("Mul", {convolution(false), along})));
}

}  // namespace
}  // namespace redfuser::testing
