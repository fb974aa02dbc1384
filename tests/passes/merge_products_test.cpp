// Products of one matrix by several constants.
#include <gtest/gtest.h>

#include <set>

#include "base/deferred_contents.h"
#include "passes/column_concat.h"
#include "passes/passes.h"
#include "support/pass_case.h"

namespace redfuser::testing {
namespace {

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

// The list of values grows and moves while products are merged, at every point of it for some
// number of values before; names stay right.
TEST_F(MergeProducts, ManyProductsKeepTheirNames) {
  constexpr size_t kGroups = 50;
  for (int before = 0; before < 12; ++before) {
    b = GraphBuilder();
    made.clear();
    for (int i = 0; i < before; ++i) input({i + 1});
    for (size_t i = 0; i < kGroups; ++i) {
      const ir::ValueId x = b.input("z" + std::to_string(i), DType::Float32, {-1, 3});
      for (float number : {1.0f, 2.0f}) made.push_back(linear(x, 2, number, true));
    }
    EXPECT_TRUE(merge());
    std::set<std::string> weights, biases;  // by what they are of
    for (const ir::Value& value : b.graph.values) {
      for (auto* part : {&weights, &biases}) {
        const size_t end = value.name.find(part == &weights ? "/weight/" : "/bias/");
        if (end != std::string::npos) part->insert(value.name.substr(0, end));
      }
    }
    EXPECT_EQ(weights.size(), kGroups);
    EXPECT_EQ(biases, weights);
  }
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

// Rows of 2, 3 and 1 elements; every range of bytes equals that of the whole matrix.
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

}  // namespace
}  // namespace redfuser::testing
