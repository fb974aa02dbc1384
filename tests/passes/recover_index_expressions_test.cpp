// Constants that are functions of their indices.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "base/dispatch.h"
#include "ir/evaluate.h"
#include "ops/lowering.h"
#include "passes/passes.h"
#include "support/pass_case.h"

namespace redfuser::testing {
namespace {

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
  bool expressed(DType dtype, const std::function<double(int64_t, int64_t)>& f, int64_t rows = 1,
                 int64_t columns = 80) {
    b = GraphBuilder();
    Tensor tensor(dtype, {rows, 1, columns});
    dispatch(dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (int64_t i = 0; i < rows * columns; ++i) {
        static_cast<T*>(tensor.mutable_data())[i] = static_cast<T>(f(i / columns, i % columns));
      }
    });
    ir::ValueId x = b.input("x", dtype, {rows, 1, columns});
    ir::ValueId constant = b.constant(tensor);
    b.output(b.node("Add", {x, b.node("Neg", {constant})}));
    if (!run_pass(passes::recover_index_expressions, b.graph)) return false;
    const ir::ValueId negated = b.graph.nodes.back().inputs[1];
    EXPECT_TRUE(b.graph.values[negated].indexed) << to_string(b.graph);
    ir::ExprPool& pool = *b.graph.pool;
    for (const int64_t j : {int64_t{0}, int64_t{1}, int64_t{2}, columns / 2 + 1, columns - 1}) {
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

// Also where inference knows every element; the fewest are loaded.
TEST_F(ExpressPositions, OfFewElements) {
  const auto position = [](int64_t, int64_t j) { return 3 + 2 * j; };
  for (const int64_t count : {9, 32, 64, 65}) {
    EXPECT_TRUE(expressed(DType::Int64, position, 1, count)) << count;
    EXPECT_TRUE(expressed(DType::Float32, position, 1, count)) << count;
  }
  EXPECT_FALSE(expressed(DType::Int64, position, 1, 8));
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
