#include <gtest/gtest.h>

#include <limits>

#include "cpu/opaque/opaque.h"
#include "cpu/opaque/opaque_shapes.h"
#include "redfuser/error.h"
#include "support/opaque_harness.h"

namespace redfuser::testing {
namespace {

using Ints = std::vector<int64_t>;
constexpr auto kInfinity = std::numeric_limits<double>::infinity();

TEST(Opaque, CumSum) {
  Tensor x = floats({2, 3}, {1, 2, 3, 4, 5, 6}), axis = integers({}, {1});
  expect_values(run_node({"CumSum", {x, axis}})[0], {2, 3}, {1, 3, 6, 4, 9, 15});
  expect_values(run_node({"CumSum", {x, axis}, {{"exclusive", int64_t{1}}}})[0], {2, 3},
                {0, 1, 3, 0, 4, 9});
  expect_values(run_node({"CumSum", {x, axis}, {{"reverse", int64_t{1}}}})[0], {2, 3},
                {6, 5, 3, 15, 11, 6});
  expect_values(run_node({"CumSum", {x, integers({}, {-2})}})[0], {2, 3}, {1, 2, 3, 5, 7, 9});
  Tensor whole = make_tensor<int>(DType::Int32, {4}, {1, -2, 3, 4});
  ir::Attributes both{{"exclusive", int64_t{1}}, {"reverse", int64_t{1}}};
  expect_values(run_node({"CumSum", {whole, integers({1}, {0})}, both})[0], {4}, {5, 7, 4, 0});
}

TEST(Opaque, Recurrent) {
  // With unit weights and rectified sums, the states are running sums in both directions.
  Tensor x = floats({3, 2, 1}, {1, 10, 2, 20, 3, 30}), one = floats({2, 1, 1}, {1, 1});
  Tensor lengths = make_tensor<int>(DType::Int32, {2}, {3, 2});
  const ir::Attributes sums{{"direction", std::string("bidirectional")},
                            {"hidden_size", int64_t{1}},
                            {"activations", std::vector<std::string>{"Relu", "Relu"}}};
  auto y = run_node({"RNN", {x, one, one, Tensor(), lengths}, sums, 2});
  expect_values(y[0], {3, 2, 2, 1}, {1, 10, 6, 30, 3, 30, 5, 20, 6, 0, 3, 0});
  expect_values(y[1], {2, 2, 1}, {6, 30, 6, 30});
}

TEST(Opaque, NonZero) {
  Tensor x = floats({2, 3}, {1, 0, 2, 0, 0, -3});
  expect_values(run_node({"NonZero", {x}})[0], {2, 3}, {0, 0, 1, 0, 2, 2});
  expect_values(run_node({"NonZero", {floats({3}, {0, 0, 0})}})[0], {1, 0}, {});
}

TEST(Opaque, Compress) {
  Tensor x = floats({3, 2}, {1, 2, 3, 4, 5, 6});
  Tensor rows = make_tensor<int>(DType::Bool, {3}, {0, 1, 1});
  expect_values(run_node({"Compress", {x, rows}, {{"axis", int64_t{0}}}})[0], {2, 2}, {3, 4, 5, 6});
  Tensor columns = make_tensor<int>(DType::Bool, {2}, {0, 1});
  expect_values(run_node({"Compress", {x, columns}, {{"axis", int64_t{1}}}})[0], {3, 1}, {2, 4, 6});
  Tensor flat = make_tensor<int>(DType::Bool, {5}, {0, 1, 0, 0, 1});
  expect_values(run_node({"Compress", {x, flat}})[0], {2}, {2, 5});
}

TEST(Opaque, Unique) {
  Tensor x = floats({6}, {2, 1, 1, 3, 4, 3});
  auto sorted = run_node({"Unique", {x}, {}, 4});
  expect_values(sorted[0], {4}, {1, 2, 3, 4});
  expect_values(sorted[1], {4}, {1, 0, 3, 4});
  expect_values(sorted[2], {6}, {1, 0, 0, 2, 3, 2});
  expect_values(sorted[3], {4}, {2, 1, 2, 1});
  auto in_order = run_node({"Unique", {x}, {{"sorted", int64_t{0}}}, 4});
  expect_values(in_order[0], {4}, {2, 1, 3, 4});
  expect_values(in_order[1], {4}, {0, 1, 3, 4});
  expect_values(in_order[2], {6}, {0, 1, 1, 2, 3, 2});
  expect_values(in_order[3], {4}, {1, 2, 2, 1});
  Tensor rows = floats({3, 3}, {1, 0, 0, 1, 0, 0, 2, 3, 4});
  auto by_row = run_node({"Unique", {rows}, {{"axis", int64_t{0}}}, 4});
  expect_values(by_row[0], {2, 3}, {1, 0, 0, 2, 3, 4});
  expect_values(by_row[2], {3}, {0, 0, 1});
}

TEST(Opaque, RegexFullMatch) {
  Tensor texts = Tensor::strings({4}, {"ab12", "ab", "12", "xab12"});
  expect_values(run_node({"RegexFullMatch", {texts}, {{"pattern", std::string("[a-c]+\\d*")}}})[0],
                {4}, {1, 1, 0, 0});
  // Back references need more than time linear in the text.
  for (const char* pattern : {"(", "(a)\\1", "((a{1000}){1000}){1000}"}) {
    EXPECT_THROW(run_node({"RegexFullMatch", {texts}, {{"pattern", std::string(pattern)}}}),
                 UserError)
        << pattern;
  }
}

TEST(Opaque, ScatterND) {
  Tensor x = floats({8}, {1, 2, 3, 4, 5, 6, 7, 8}), at = integers({4, 1}, {4, 3, 1, 7});
  Tensor updates = floats({4}, {9, 10, 11, 12});
  expect_values(run_node({"ScatterND", {x, at, updates}})[0], {8}, {1, 11, 3, 10, 9, 6, 7, 12});
  Tensor rows = floats({2, 2}, {1, 2, 3, 4}), twice = integers({2, 1}, {1, -1});
  Tensor added = floats({2, 2}, {10, 20, 30, 40});
  for (auto [reduction, expected] :
       std::vector<std::pair<std::string, std::vector<double>>>{{"add", {1, 2, 43, 64}},
                                                                {"mul", {1, 2, 900, 3200}},
                                                                {"max", {1, 2, 30, 40}},
                                                                {"min", {1, 2, 3, 4}}}) {
    expect_values(run_node({"ScatterND", {rows, twice, added}, {{"reduction", reduction}}})[0],
                  {2, 2}, expected);
  }
  EXPECT_THROW(run_node({"ScatterND", {x, integers({1, 1}, {8}), floats({1}, {0})}}), UserError);
}

TEST(Opaque, ScatterElements) {
  Tensor x = floats({1, 5}, {1, 2, 3, 4, 5}), at = integers({1, 2}, {1, -2});
  Tensor updates = floats({1, 2}, {1.5, 2.5});
  ir::Attributes axis{{"axis", int64_t{1}}};
  expect_values(run_node({"ScatterElements", {x, at, updates}, axis})[0], {1, 5},
                {1, 1.5, 3, 2.5, 5});
  axis["reduction"] = std::string("add");
  Tensor same = integers({1, 2}, {1, 1});
  expect_values(run_node({"ScatterElements", {x, same, updates}, axis})[0], {1, 5},
                {1, 6, 3, 4, 5});
  Tensor half = make_tensor<float>(DType::Float16, {3, 2}, {0, 0, 0, 0, 0, 0});
  Tensor half_updates = make_tensor<float>(DType::Float16, {2, 2}, {1, 2, 3, 4});
  Tensor crossed = make_tensor<int>(DType::Int32, {2, 2}, {1, 0, 2, 2});
  expect_values(run_node({"ScatterElements", {half, crossed, half_updates}})[0], {3, 2},
                {0, 2, 1, 0, 3, 4});
}

TEST(Opaque, NonMaxSuppression) {
  Tensor boxes = floats({1, 6, 4}, {0, 0,  1, 1,  0, 0.1f,  1, 1.1f,  0, -0.1f, 1, 0.9f,
                                    0, 10, 1, 11, 0, 10.1f, 1, 11.1f, 0, 100,   1, 101});
  Tensor scores = floats({1, 1, 6}, {0.9f, 0.75f, 0.6f, 0.95f, 0.5f, 0.3f});
  auto run = [&](int64_t count, float overlap, float score) {
    return run_node(
        {"NonMaxSuppression",
         {boxes, scores, integers({1}, {count}), floats({1}, {overlap}), floats({1}, {score})}})[0];
  };
  expect_values(run(3, 0.5f, 0), {3, 3}, {0, 0, 3, 0, 0, 0, 0, 0, 5});
  expect_values(run(2, 0.5f, 0), {2, 3}, {0, 0, 3, 0, 0, 0});
  expect_values(run(3, 0.5f, 0.4f), {2, 3}, {0, 0, 3, 0, 0, 0});
  expect_values(run(0, 0.5f, 0), {0, 3}, {});
}

TEST(Opaque, ResizeNearest) {
  Tensor x = floats({1, 1, 2, 2}, {1, 2, 3, 4}), scales = floats({4}, {1, 1, 2, 3});
  expect_values(run_node({"Resize", {x, Tensor(), scales}})[0], {1, 1, 4, 6},
                {1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 3, 3, 3, 4, 4, 4});
  expect_values(run_node({"Upsample", {x, floats({4}, {1, 1, 1, 2})}, {}, 1, 9})[0], {1, 1, 2, 4},
                {1, 1, 2, 2, 3, 3, 4, 4});
  ir::Attributes floor{{"nearest_mode", std::string("floor")},
                       {"coordinate_transformation_mode", std::string("asymmetric")}};
  Tensor bytes = make_tensor<int>(DType::UInt8, {1, 4}, {1, 2, 3, 4});
  expect_values(run_node({"Resize", {bytes, Tensor(), floats({2}, {1, 0.5f})}, floor})[0], {1, 2},
                {1, 3});
}

TEST(Opaque, ResizeLinearAndCubic) {
  Tensor x = floats({1, 1, 2, 2}, {1, 2, 3, 4}), scales = floats({4}, {1, 1, 2, 2});
  ir::Attributes linear{{"mode", std::string("linear")}};
  expect_values(run_node({"Resize", {x, Tensor(), scales}, linear})[0], {1, 1, 4, 4},
                {1, 1.25, 1.75, 2, 1.5, 1.75, 2.25, 2.5, 2.5, 2.75, 3.25, 3.5, 3, 3.25, 3.75, 4},
                1e-6);
  linear["coordinate_transformation_mode"] = std::string("align_corners");
  Tensor sizes = integers({4}, {1, 1, 3, 2});
  expect_values(run_node({"Resize", {x, Tensor(), Tensor(), sizes}, linear})[0], {1, 1, 3, 2},
                {1, 2, 2, 3, 3, 4}, 1e-6);
  Tensor row = floats({1, 4}, {1, 2, 3, 4});
  ir::Attributes cubic{{"mode", std::string("cubic")}};
  expect_values(
      run_node({"Resize", {row, Tensor(), floats({2}, {1, 2})}, cubic})[0], {1, 8},
      {0.89453125, 1.19140625, 1.66796875, 2.296875, 2.703125, 3.33203125, 3.80859375, 4.10546875},
      1e-6);
}

TEST(Opaque, ResizeRegionAndAspectRatio) {
  Tensor x = floats({1, 4}, {1, 2, 3, 4});
  ir::Attributes crop{{"mode", std::string("linear")},
                      {"coordinate_transformation_mode", std::string("tf_crop_and_resize")},
                      {"extrapolation_value", 10.0f}};
  Tensor region = floats({4}, {0, 0, 1, 2});
  expect_values(run_node({"Resize", {x, region, Tensor(), integers({2}, {1, 3})}, crop})[0], {1, 3},
                {1, 4, 10}, 1e-6);
  ir::Attributes keep{{"keep_aspect_ratio_policy", std::string("not_larger")},
                      {"axes", Ints{1, 0}}};
  Tensor square = floats({2, 2}, {1, 2, 3, 4});
  expect_values(run_node({"Resize", {square, Tensor(), Tensor(), integers({2}, {8, 4})}, keep})[0],
                {4, 4}, {1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4});
}

TEST(Opaque, MissingKernelNamesTheNode) {
  GraphBuilder builder;
  ir::ValueId x = builder.input("x", DType::Float32, {4});
  builder.node("Relu", {x});
  try {
    cpu::make_opaque_kernel(builder.graph, fuse::OpaqueStep{0});
    FAIL();
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("Relu_0"), std::string::npos);
  }
}

// Shapes that depend on the contents of run-time tensors.
class RuntimeShape : public ::testing::Test {
 protected:
  Dims dims_after(const std::string& op, const std::vector<Tensor>& inputs,
                  ir::Attributes attributes = {}, int output = 0, int outputs = 1) {
    GraphBuilder builder;
    std::vector<ir::ValueId> ids;
    for (const Tensor& x : inputs) {
      ids.push_back(builder.input(fmt::format("x{}", ids.size()), x.dtype(), x.dims()));
    }
    builder.node(op, ids, std::move(attributes), outputs);
    std::vector<Tensor> tensors(inputs);
    tensors.resize(builder.graph.values.size());
    std::vector<int64_t> symbols;
    ThreadPool pool(1);
    cpu::RunContext context{builder.graph, tensors, symbols, pool};
    EXPECT_TRUE(has_unbound_shape(context, builder.graph.nodes[0]));
    bind_runtime_shape(context, builder.graph.nodes[0]);
    EXPECT_FALSE(has_unbound_shape(context, builder.graph.nodes[0]));
    return cpu::dims_of(builder.graph, builder.graph.nodes[0].outputs[output], symbols);
  }
  Tensor data(Dims dims) {
    Tensor tensor(DType::Float32, std::move(dims));
    std::fill_n(tensor.as<float>(), tensor.size(), 1.0f);
    return tensor;
  }
};

TEST_F(RuntimeShape, FollowsFromTheContents) {
  EXPECT_EQ(dims_after("Reshape", {data({4, 6}), integers({3}, {2, -1, 3})}), (Dims{2, 4, 3}));
  EXPECT_EQ(dims_after("Expand", {data({3, 1}), integers({3}, {2, 1, 6})}), (Dims{2, 3, 6}));
  EXPECT_EQ(dims_after("Tile", {data({2, 3}), integers({2}, {2, 3})}), (Dims{4, 9}));
  EXPECT_EQ(dims_after("Range", {integers({}, {2}), integers({}, {11}), integers({}, {3})}),
            (Dims{3}));
  EXPECT_EQ(dims_after("ConstantOfShape", {integers({2}, {3, 5})}), (Dims{3, 5}));
  EXPECT_EQ(dims_after("Slice", {data({10, 4}), integers({2}, {2, 0}), integers({2}, {-1, 9})}),
            (Dims{7, 4}));
  EXPECT_EQ(dims_after("Pad", {data({2, 3}), integers({4}, {1, 0, 2, 1})}), (Dims{5, 4}));
  EXPECT_EQ(dims_after("OneHot", {integers({2}, {0, 1}), integers({}, {7}), floats({2}, {0, 1})}),
            (Dims{2, 7}));
  EXPECT_EQ(dims_after("TopK", {data({2, 8}), integers({1}, {3})}, {}, 1, 2), (Dims{2, 3}));
  EXPECT_EQ(dims_after("Split", {data({8, 2}), integers({2}, {3, 5})}, {}, 1, 2), (Dims{5, 2}));
}

TEST_F(RuntimeShape, RefusesWhatDoesNotFit) {
  EXPECT_THROW(dims_after("Reshape", {data({4, 6}), integers({2}, {5, 5})}), UserError);
}

}  // namespace
}  // namespace redfuser::testing
