// Inference beyond shapes: contents of small values, functions of indices, and shapes that follow
// from them.
#include "ops/lowering.h"
#include "support/ops_case.h"

namespace redfuser::testing {
namespace {

std::string shape_of(const GraphBuilder& b, ir::ValueId id) {
  return ops::shape_text(*b.graph.pool, b.graph.values[id].shape);
}
std::string contents(const GraphBuilder& b, ir::ValueId id) {
  const ir::Value& value = b.graph.values[id];
  return value.has_elements ? ops::shape_text(*b.graph.pool, value.elements) : "unknown";
}
std::string element_text(const GraphBuilder& b, ir::ValueId id) {
  ops::Lowering lowering(b.graph, [&](ir::ValueId value) { return value == id; });
  return to_string(*b.graph.pool, lowering.element(id, ops::output_axes(b.graph, id)));
}
ir::ValueId size_of_dim(GraphBuilder& b, ir::ValueId x, int64_t dim) {
  return b.node("Gather", {b.node("Shape", {x}), b.constant(integers({1}, {dim}))});
}

TEST(OpsPropagation, ShapeArithmetic) {
  GraphBuilder b;
  const ir::ValueId x = b.input("x", DType::Float32, {-1, -2, 64});
  const ir::ValueId shape = b.node("Shape", {x});
  EXPECT_EQ(contents(b, shape), "[s0,s1,64]");
  EXPECT_EQ(contents(b, b.node("Shape", {x}, {{"start", int64_t{-2}}})), "[s1,64]");
  const ir::ValueId seq = size_of_dim(b, x, 1);
  EXPECT_EQ(contents(b, seq), "[s1]");
  EXPECT_EQ(contents(b, b.node("Add", {seq, seq})), "[2*s1]");
  EXPECT_EQ(contents(b, b.node("ReduceProd", {shape}, {{"keepdims", int64_t{0}}})), "[64*s0*s1]");
  EXPECT_EQ(contents(b, b.node("Size", {x})), "[64*s0*s1]");
  const ir::ValueId real = b.node("Cast", {seq}, {{"to", int64_t{1}}});
  EXPECT_EQ(contents(b, b.node("Sqrt", {real})), "[sqrt(float32(s1))]");
  EXPECT_TRUE(b.graph.values[size_of_dim(b, x, 2)].is_constant());
}

TEST(OpsPropagation, ConcatWhereReshape) {
  GraphBuilder b;
  const ir::ValueId x = b.input("x", DType::Float32, {-1, -2, 64});
  const ir::ValueId minus = b.constant(integers({1}, {-1}));
  const ir::ValueId parts =
      b.node("Concat",
             {size_of_dim(b, x, 0), size_of_dim(b, x, 1), minus, b.constant(integers({1}, {16}))},
             {{"axis", int64_t{0}}});
  EXPECT_EQ(contents(b, parts), "[s0,s1,-1,16]");
  const ir::ValueId heads = b.node("Reshape", {x, parts});
  EXPECT_EQ(shape_of(b, heads), "[s0,s1,4,16]");
  // Exporters ask Expand for -1 by Where(shape == -1, 1, shape).
  const ir::ValueId ones =
      b.node("ConstantOfShape", {b.constant(integers({1}, {4}))}, {{"value", integers({1}, {1})}});
  const ir::ValueId target = b.node("Where", {b.node("Equal", {parts, minus}), ones, parts});
  EXPECT_EQ(contents(b, target), "[s0,s1,1,16]");
  EXPECT_EQ(shape_of(b, b.node("Expand", {heads, target})), "[s0,s1,4,16]");
}

// Of a convolution without padding it is not proved that its output has no negative size; that
// holds for every dimension.
TEST(OpsPropagation, NoDimensionIsNegative) {
  GraphBuilder b;
  const ir::ValueId x = b.input("x", DType::Float32, {1, 1, -1});
  const ir::ValueId w = b.constant(floats({6, 1, 10}, std::vector<float>(60)));
  const ir::ValueId conv = b.node("Conv", {x, w}, {{"strides", List{5}}});
  const std::string size = "-1 + (s0//5)";
  EXPECT_EQ(shape_of(b, conv), "[1,6," + size + "]");
  const ir::ValueId even = b.constant(floats({6, 1, 2}, std::vector<float>(12)));
  const ir::ValueId wider =
      b.node("Conv", {conv, even}, {{"pads", List{1, 1}}, {"group", int64_t{6}}});
  EXPECT_EQ(shape_of(b, wider), "[1,6,s0//5]");
  auto one = [&](int64_t value) { return b.constant(integers({1}, {value})); };
  const ir::ValueId cut = b.node("Slice", {wider, one(0), one(-1), one(2)});
  EXPECT_EQ(shape_of(b, b.node("Add", {conv, cut})), "[1,6," + size + "]");
  EXPECT_EQ(shape_of(b, b.node("Add", {cut, conv})), "[1,6," + size + "]");
  const ir::ValueId rows = b.node("Transpose", {conv}, {{"perm", List{0, 2, 1}}});
  const ir::ValueId target =
      b.node("Concat", {one(1), size_of_dim(b, rows, 1), one(-1), one(2)}, {{"axis", int64_t{0}}});
  EXPECT_EQ(shape_of(b, b.node("Reshape", {rows, target})), "[1," + size + ",3,2]");
}

TEST(OpsPropagation, SlicesOfSymbolicSizes) {
  GraphBuilder b;
  const ir::ValueId x = b.input("x", DType::Float32, {-1, 512});
  const ir::ValueId zero = b.constant(integers({1}, {0})), one = b.constant(integers({1}, {1}));
  const ir::ValueId minus = b.constant(integers({1}, {-1}));
  const ir::ValueId end = b.constant(integers({1}, {INT64_MAX})), rows = size_of_dim(b, x, 0);
  // All but the first and all but the last are as many: none of none.
  const std::string others = "[s0 + (-1*min(s0,1)),512]";
  EXPECT_EQ(shape_of(b, b.node("Slice", {x, one, end, zero})), others);
  EXPECT_EQ(shape_of(b, b.node("Slice", {x, minus, end, zero})), "[min(s0,1),512]");
  EXPECT_EQ(shape_of(b, b.node("Slice", {x, zero, minus, zero})), others);
  EXPECT_EQ(shape_of(b, b.node("Slice", {x, zero, rows, zero})), "[s0,512]");
  // A table cut down to the sequence fits the sequence again.
  const ir::ValueId cut = b.node("Slice", {x, zero, rows, one});
  EXPECT_EQ(shape_of(b, cut), "[s0,min(s0,512)]");
  const ir::ValueId y = b.input("y", DType::Float32, {-1, -1});
  EXPECT_EQ(shape_of(b, b.node("Add", {y, cut})), "[s0,s0]");
}

TEST(OpsPropagation, CausalMaskIsAFunctionOfItsIndex) {
  GraphBuilder b;
  const ir::ValueId x = b.input("x", DType::Float32, {-1, -2, 64});
  const ir::ValueId seq = b.node("Squeeze", {size_of_dim(b, x, 1)});
  const ir::ValueId positions =
      b.node("Range", {b.constant(integers({}, {0})), seq, b.constant(integers({}, {1}))});
  EXPECT_EQ(shape_of(b, positions), "[s1]");
  const ir::ValueId rows = b.node("Unsqueeze", {positions, b.constant(integers({1}, {1}))});
  const ir::ValueId kept = b.node("LessOrEqual", {positions, rows});
  const ir::ValueId mask =
      b.node("Where", {kept, b.constant(floats({}, {0})), b.constant(floats({}, {-1e9f}))});
  EXPECT_EQ(shape_of(b, mask), "[s1,s1]");
  EXPECT_TRUE(b.graph.values[mask].indexed);
  EXPECT_FALSE(b.graph.values[mask].has_elements);
  const ir::ValueId scores = b.input("scores", DType::Float32, {-1, 4, -2, -2});
  const ir::ValueId masked = b.node("Add", {scores, mask});
  EXPECT_FALSE(b.graph.values[masked].indexed);
  EXPECT_EQ(element_text(b, masked),
            "%" + std::to_string(scores) + "[i0,i1,i2,i3] + select(i3 <= i2,0,-1e+09)");
}

TEST(OpsPropagation, TriangularMaskOfOnes) {
  GraphBuilder b;
  const ir::ValueId x = b.input("x", DType::Float32, {-1, -2});
  const ir::ValueId square =
      b.node("Concat", {size_of_dim(b, x, 1), size_of_dim(b, x, 1)}, {{"axis", int64_t{0}}});
  const ir::ValueId ones = b.node("ConstantOfShape", {square}, {{"value", floats({1}, {1})}});
  const ir::ValueId mask = b.node("Trilu", {ones}, {{"upper", int64_t{0}}});
  EXPECT_TRUE(b.graph.values[mask].indexed);
  EXPECT_EQ(element_text(b, mask), "select(i1 <= i0,1,0)");
}

TEST(OpsPropagation, SharedHeadsReadTheirGroup) {
  GraphBuilder b;
  const ir::ValueId x = b.input("x", DType::Float32, {-1, 2, -2, 16});
  const ir::ValueId grouped = b.node("Unsqueeze", {x, b.constant(integers({1}, {2}))});
  const ir::ValueId size = b.constant(integers({1}, {3})), kv = b.constant(integers({1}, {2}));
  const ir::ValueId width = b.constant(integers({1}, {16}));
  const ir::ValueId target =
      b.node("Concat", {size_of_dim(b, x, 0), kv, size, size_of_dim(b, x, 2), width},
             {{"axis", int64_t{0}}});
  const ir::ValueId expanded = b.node("Expand", {grouped, target});
  EXPECT_EQ(shape_of(b, expanded), "[s0,2,3,s1,16]");
  const ir::ValueId merged = b.node(
      "Concat", {size_of_dim(b, x, 0), b.constant(integers({1}, {6})), size_of_dim(b, x, 2), width},
      {{"axis", int64_t{0}}});
  const ir::ValueId shared = b.node("Reshape", {expanded, merged});
  EXPECT_EQ(shape_of(b, shared), "[s0,6,s1,16]");
  ops::Lowering lowering(b.graph, [](ir::ValueId) { return true; });
  EXPECT_EQ(to_string(*b.graph.pool, lowering.element(shared, ops::output_axes(b.graph, shared))),
            "%0[i0,i1//3,i2,i3]");
}

TEST(OpsPropagation, CacheGrowsByTheNewTokens) {
  GraphBuilder b;
  const ir::ValueId past = b.input("past", DType::Float32, {-1, -2, 4});
  const ir::ValueId next = b.input("next", DType::Float32, {-1, -3, 4});
  const ir::ValueId all = b.node("Concat", {past, next}, {{"axis", int64_t{1}}});
  EXPECT_EQ(shape_of(b, all), "[s0,s1 + s2,4]");
  EXPECT_EQ(element_text(b, all),
            "select(i1 < s1,%0[i0,min(i1,-1 + s1),i2],%1[i0,max(-1*s1 + i1,0),i2])");
}

TEST(OpsPropagation, SizesComputedAtRunTimeAreSymbols) {
  GraphBuilder b;
  const ir::ValueId x = b.input("x", DType::Float32, {-1, 6});
  const ir::ValueId target = b.input("target", DType::Int64, {2});
  const ir::ValueId y = b.node("Reshape", {x, target});
  ASSERT_EQ(b.graph.values[y].shape.size(), 2u);
  for (ir::Expr size : b.graph.values[y].shape) EXPECT_EQ(size->op, ir::ExprOp::Symbol);
  const ir::ValueId found = b.node("NonZero", {x});
  EXPECT_EQ(b.graph.values[found].shape[0]->integer, 2);
  EXPECT_EQ(b.graph.values[found].shape[1]->op, ir::ExprOp::Symbol);
}

TEST(OpsPropagation, WindowsOfSymbolicSizes) {
  GraphBuilder b;
  const ir::ValueId x = b.input("x", DType::Float32, {-1, 3, -2, 32});
  const ir::ValueId w = b.constant(floats({8, 3, 3, 3}, std::vector<float>(216)));
  const ir::Attributes strided{{"strides", List{2, 2}}, {"pads", List{1, 1, 1, 1}}};
  EXPECT_EQ(shape_of(b, b.node("Conv", {x, w}, strided)), "[s0,8,1 + ((-1 + s1)//2),16]");
  const ir::Attributes same{{"auto_pad", std::string("SAME_UPPER")}};
  EXPECT_EQ(shape_of(b, b.node("Conv", {x, w}, same)), "[s0,8,s1,32]");
  const ir::Attributes pool{
      {"kernel_shape", List{3, 3}}, {"strides", List{2, 2}}, {"ceil_mode", int64_t{1}}};
  EXPECT_EQ(b.graph.values[b.node("MaxPool", {x}, pool)].shape[3]->integer, 16);
  EXPECT_EQ(shape_of(b, b.node("ConvTranspose", {b.input("t", DType::Float32, {1, 8, -2, 4}), w},
                               {{"strides", List{2, 2}}})),
            "[1,3,1 + (2*s1),9]");
}

}  // namespace
}  // namespace redfuser::testing
