#include "ops/lowering.h"
#include "ops/registry.h"
#include "support/ops_case.h"

namespace redfuser::testing {
namespace {

const int64_t kZero = 0, kOne = 1;

std::vector<OpCase> cases() {
  const Tensor x = floats({2, 3}, {1, 5, 3, 2, -2, 9});
  const Tensor cube = floats({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const double e = std::exp(1.0);
  const float inf = std::numeric_limits<float>::infinity();
  return {
      {"sum_attribute",
       "ReduceSum",
       11,
       {x},
       {},
       {{"axes", List{1}}, {"keepdims", kZero}},
       {2},
       {9, 9}},
      {"sum_input", "ReduceSum", 13, {x, integers({1}, {-2})}, {1}, {}, {1, 3}, {3, 3, 12}},
      {"sum_noop",
       "ReduceSum",
       13,
       {x},
       {},
       {{"noop_with_empty_axes", kOne}},
       {2, 3},
       {1, 5, 3, 2, -2, 9}},
      {"sum_square_noop",
       "ReduceSumSquare",
       18,
       {x},
       {},
       {{"noop_with_empty_axes", kOne}},
       {2, 3},
       {1, 25, 9, 4, 4, 81}},
      {"sum_adjacent",
       "ReduceSum",
       13,
       {cube, integers({2}, {1, 2})},
       {1},
       {{"keepdims", kZero}},
       {2},
       {10, 26}},
      {"sum_apart",
       "ReduceSum",
       13,
       {cube, integers({2}, {0, 2})},
       {1},
       {{"keepdims", kZero}},
       {2},
       {14, 22}},
      {"mean_all", "ReduceMean", 18, {cube}, {}, {{"keepdims", kZero}}, {}, {4.5}},
      {"max", "ReduceMax", 18, {x, integers({1}, {1})}, {1}, {}, {2, 1}, {5, 9}},
      {"max_bool",
       "ReduceMax",
       20,
       {booleans({2, 2}, {0, 1, 0, 0}), integers({1}, {1})},
       {1},
       {{"keepdims", kZero}},
       {2},
       {1, 0}},
      {"prod",
       "ReduceProd",
       18,
       {x, integers({1}, {0})},
       {1},
       {{"keepdims", kZero}},
       {3},
       {2, -10, 27}},
      {"l1", "ReduceL1", 18, {x, integers({1}, {1})}, {1}, {{"keepdims", kZero}}, {2}, {9, 13}},
      {"l2", "ReduceL2", 18, {floats({2}, {3, 4})}, {}, {{"keepdims", kZero}}, {}, {5}},
      {"log_sum_exp",
       "ReduceLogSumExp",
       18,
       {floats({2, 2}, {1000, 1000, -inf, -inf}), integers({1}, {1})},
       {1},
       {{"keepdims", kZero}},
       {2},
       {1000 + std::log(2.0), -kInf}},
      {"sum_square",
       "ReduceSumSquare",
       18,
       {floats({2}, {3, 4})},
       {},
       {{"keepdims", kZero}},
       {},
       {25}},
      {"argmax_first", "ArgMax", 13, {floats({4}, {1, 7, 7, 0})}, {}, {}, {1}, {1}},
      {"argmax_last",
       "ArgMax",
       13,
       {floats({4}, {1, 7, 7, 0})},
       {},
       {{"select_last_index", kOne}},
       {1},
       {2}},
      {"argmin", "ArgMin", 13, {x}, {}, {{"axis", kOne}, {"keepdims", kZero}}, {2}, {0, 1}},
      {"topk_values", "TopK", 11, {x, integers({1}, {2})}, {1}, {}, {2, 2}, {5, 3, 9, 2}, 0, 2},
      {"topk_smallest_index",
       "TopK",
       11,
       {x, integers({1}, {2})},
       {1},
       {{"largest", kZero}},
       {2, 2},
       {0, 2, 1, 0},
       1,
       2},
      {"global_average",
       "GlobalAveragePool",
       1,
       {floats({1, 2, 2, 1}, {1, 3, 5, 9})},
       {},
       {},
       {1, 2, 1, 1},
       {2, 7}},
      {"softmax_matrix",
       "Softmax",
       11,
       {floats({1, 2, 2}, {0, 0, 0, 0})},
       {},
       {},
       {1, 2, 2},
       {0.25, 0.25, 0.25, 0.25}},
      {"log_softmax",
       "LogSoftmax",
       11,
       {floats({1, 2}, {1000, 1001})},
       {},
       {},
       {1, 2},
       {-std::log(1 + e), 1 - std::log(1 + e)}},
      {"hardmax",
       "Hardmax",
       13,
       {floats({2, 3}, {1, 4, 4, 0, -1, -2})},
       {},
       {},
       {2, 3},
       {0, 1, 0, 1, 0, 0}},
      {"hardmax_matrix",
       "Hardmax",
       11,
       {floats({1, 2, 2}, {1, 0, 3, 2})},
       {},
       {},
       {1, 2, 2},
       {0, 0, 1, 0}},
      {"batch_norm",
       "BatchNormalization",
       15,
       {floats({1, 2, 1}, {3, 5}), floats({2}, {2, 1}), floats({2}, {1, 0}), floats({2}, {1, 5}),
        floats({2}, {4, 1})},
       {},
       {{"epsilon", 0.0f}},
       {1, 2, 1},
       {3, 0}},
      {"instance_norm",
       "InstanceNormalization",
       6,
       {floats({1, 1, 2}, {1, 3}), floats({1}, {2}), floats({1}, {10})},
       {},
       {{"epsilon", 0.0f}},
       {1, 1, 2},
       {8, 12}},
      {"lp_norm",
       "LpNormalization",
       1,
       {floats({2, 2}, {3, 4, 0, 0})},
       {},
       {},
       {2, 2},
       {0.6, 0.8, 0, 0}},
      {"matmul", "MatMul", 13, {x, floats({3, 1}, {1, 0, -1})}, {}, {}, {2, 1}, {-2, -7}},
      {"matmul_vectors",
       "MatMul",
       13,
       {floats({2}, {1, 2}), floats({2}, {3, 4})},
       {},
       {},
       {},
       {11}},
      {"matmul_left_vector",
       "MatMul",
       13,
       {floats({2}, {1, 2}), cube},
       {},
       {},
       {2, 2},
       {7, 10, 19, 22}},
      {"matmul_batches",
       "MatMul",
       13,
       {cube, floats({1, 2, 1}, {1, 1})},
       {},
       {},
       {2, 2, 1},
       {3, 7, 11, 15}},
      {"gemm",
       "Gemm",
       13,
       {floats({2, 1}, {1, 2}), floats({3, 2}, {1, 2, 3, 4, 5, 6}), floats({3}, {1, 2, 3})},
       {},
       {{"transA", kOne}, {"transB", kOne}, {"alpha", 2.0f}, {"beta", 10.0f}},
       {1, 3},
       {20, 42, 64}},
      {"einsum_batched",
       "Einsum",
       12,
       {cube, cube},
       {},
       {{"equation", std::string("bij,bjk->bik")}},
       {2, 2, 2},
       {7, 10, 15, 22, 67, 78, 91, 106}},
      {"einsum_diagonal",
       "Einsum",
       12,
       {floats({2, 2}, {1, 2, 3, 4})},
       {},
       {{"equation", std::string("ii->i")}},
       {2},
       {1, 4}},
      {"einsum_implicit_ellipsis",
       "Einsum",
       12,
       {cube, floats({2}, {1, -1})},
       {},
       {{"equation", std::string("...j, j")}},
       {2, 2},
       {-1, -1, -1, -1}},
      {"matmul_integer",
       "MatMulInteger",
       10,
       {make_tensor<int64_t>(DType::UInt8, {1, 2}, {5, 7}),
        make_tensor<int64_t>(DType::Int8, {2, 1}, {-1, 2}),
        make_tensor<int64_t>(DType::UInt8, {}, {4})},
       {},
       {},
       {1, 1},
       {5}},
      {"matmul_integer_listed_zero_points",
       "MatMulInteger",
       10,
       {make_tensor<int64_t>(DType::UInt8, {2, 2}, {5, 7, 1, 2}),
        make_tensor<int64_t>(DType::UInt8, {2, 2}, {1, 2, 3, 4}),
        make_tensor<int64_t>(DType::UInt8, {2}, {4, 1}),
        make_tensor<int64_t>(DType::UInt8, {1, 2}, {1, 2})},
       {2, 3},
       {},
       {2, 2},
       {6, 6, 2, 2}},
  };
}

class OpsReduction : public ::testing::TestWithParam<OpCase> {};
TEST_P(OpsReduction, StaticShapes) { check(GetParam(), false); }
TEST_P(OpsReduction, SymbolicShapes) { check(GetParam(), true); }
INSTANTIATE_TEST_SUITE_P(All, OpsReduction, ::testing::ValuesIn(cases()), case_name);

// The element of a node's first output, lowered by itself.
std::string element_text(GraphBuilder& b, ir::ValueId value) {
  ops::Lowering lowering(b.graph, [&](ir::ValueId id) { return id == value; });
  return to_string(*b.graph.pool, lowering.element(value, ops::output_axes(b.graph, value)));
}

TEST(OpsReduction, AdjacentAxesAreOneLoop) {
  GraphBuilder b;
  const ir::ValueId x = b.input("x", DType::Float32, {-1, 4, 1, 5, -2});
  const ir::ValueId axes = b.constant(integers({2}, {1, 3}));
  EXPECT_EQ(element_text(b, b.node("ReduceSum", {x, axes})), "sum_r1<20(%0[i0,r1//5,0,r1%5,i4])");
}

TEST(OpsReduction, ProductsAreAffineInTheirLoop) {
  GraphBuilder b;
  const ir::ValueId q = b.input("q", DType::Float32, {-1, 4, -2, 16});
  const ir::ValueId k = b.input("k", DType::Float32, {-1, 4, 16, -2});
  EXPECT_EQ(element_text(b, b.node("MatMul", {q, k})),
            "sum_r1<16(%0[i0,i1,i2,r1]*%1[i0,i1,r1,i3])");
}

TEST(OpsReduction, RefusesInnerSizesThatDiffer) {
  GraphBuilder b;
  const ir::ValueId x = b.input("x", DType::Float32, {2, 3}),
                    y = b.input("y", DType::Float32, {4, 2});
  EXPECT_THROW(b.node("MatMul", {x, y}), UserError);
  const ir::ValueId open = b.input("open", DType::Float32, {-1, 2});
  b.node("MatMul", {x, open});
  ASSERT_EQ(b.graph.size_checks.size(), 1u);
}

TEST(OpsReduction, SoftmaxIsLeftToItsFunctionBody) {
  EXPECT_NE(ops::find_op("", "Softmax", 12), nullptr);
  EXPECT_EQ(ops::find_op("", "Softmax", 13), nullptr);
  EXPECT_EQ(ops::find_op("", "LayerNormalization", 17), nullptr);
  EXPECT_EQ(ops::find_op("com.microsoft", "Add", 7), nullptr);
}

}  // namespace
}  // namespace redfuser::testing
