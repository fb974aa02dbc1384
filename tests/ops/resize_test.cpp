// Resize as an expression against the tables by which the opaque form resamples.
#include "cpu/opaque/image/resample.h"
#include "support/ops_case.h"

namespace redfuser::testing {
namespace {

struct Sizes {
  int64_t input;
  float scale;     // 0: by `output`
  int64_t output;  // floor(scale * input) otherwise
};
constexpr Sizes kSizes[] = {{4, 2, 8},    {3, 3, 9}, {6, 0.5f, 3}, {5, 0.6f, 3}, {4, 1.5f, 6},
                            {2, 0.5f, 1}, {4, 0, 8}, {6, 0, 9},    {9, 0, 6},    {5, 0, 7},
                            {3, 0, 1},    {1, 0, 4}, {7, 0, 3}};
const char* const kCoordinates[] = {"half_pixel", "asymmetric", "align_corners",
                                    "pytorch_half_pixel", "tf_half_pixel_for_nn"};
const char* const kRoundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};

Tensor uneven(int64_t count) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>((i * 7 + 3) % 11) - 4);
  return floats({1, count}, values);
}

OpCase resize_case(const Sizes& sizes, const cpu::ResampleOptions& options) {
  OpCase c{.name = "resize", .op = "Resize", .inputs = {uneven(sizes.input), Tensor()}};
  if (sizes.scale > 0) {
    c.inputs.push_back(floats({2}, {1, sizes.scale}));
  } else {
    c.inputs.push_back(Tensor());
    c.inputs.push_back(integers({2}, {1, sizes.output}));
  }
  c.constant = {static_cast<int>(c.inputs.size()) - 1};
  c.attributes = {{"mode", options.mode},
                  {"coordinate_transformation_mode", options.coordinates},
                  {"nearest_mode", options.nearest}};
  c.dims = {1, sizes.output};
  const double scale = sizes.scale > 0
                           ? static_cast<double>(sizes.scale)
                           : static_cast<double>(sizes.output) / static_cast<double>(sizes.input);
  const cpu::ResampleTable table = make_resample_table({sizes.input, sizes.output, scale}, options);
  const std::vector<double> x = values_of(c.inputs[0]);
  for (size_t o = 0; o + 1 < table.start.size(); ++o) {
    double sum = 0;
    for (auto t = static_cast<size_t>(table.start[o]); t < size_t(table.start[o + 1]); ++t) {
      sum += table.weight[t] * x[static_cast<size_t>(table.index[t])];
    }
    c.values.push_back(sum);
  }
  return c;
}

bool is_expression(const OpCase& c, bool symbolic) {
  GraphBuilder builder;
  std::vector<std::pair<ir::ValueId, Tensor>> feeds;
  build(builder, c, symbolic, feeds);
  return builder.graph.nodes[0].def->lower != nullptr;
}

TEST(Resize, ExpressionsAgreeWithTables) {
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    for (const char* coordinates : kCoordinates) {
      for (const char* rounding : kRoundings) {
        if (std::string(mode) != "nearest" && rounding != kRoundings[0]) continue;
        for (const Sizes& sizes : kSizes) {
          const OpCase c = resize_case(sizes, {mode, coordinates, rounding});
          SCOPED_TRACE(fmt::format("{} {} {} {} -> {} by {}", mode, coordinates, rounding,
                                   sizes.input, sizes.output, sizes.scale));
          for (bool symbolic : {false, true}) {
            EXPECT_TRUE(is_expression(c, symbolic));
            check(c, symbolic);
          }
        }
      }
    }
  }
}

TEST(Resize, InfiniteNeighboursWithoutWeightAreNotRead) {
  OpCase c = resize_case({3, 2, 6}, {"linear", "asymmetric"});
  c.inputs[0] = floats({1, 3}, {1, static_cast<float>(kInf), 2});
  c.values = {1, kInf, kInf, kInf, 2, 2};
  check(c, false);
}

// Two axes at once, whole numbers that a nearest neighbour copies.
TEST(Resize, TakesBothAxes) {
  const Tensor x = make_tensor<int>(DType::UInt8, {1, 1, 2, 2}, {1, 2, 3, 4});
  OpCase c{.name = "both",
           .op = "Resize",
           .inputs = {x, Tensor(), floats({4}, {1, 1, 2, 2})},
           .constant = {2},
           .dims = {1, 1, 4, 4},
           .values = {1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4}};
  EXPECT_TRUE(is_expression(c, true));
  check(c, true);
}

TEST(Resize, OtherFormsStayOpaque) {
  const OpCase plain = resize_case({6, 0.5f, 3}, {"linear", "half_pixel"});
  ASSERT_TRUE(is_expression(plain, false));
  auto with = [&](const std::string& name, auto value) {
    OpCase c = plain;
    c.attributes[name] = value;
    return c;
  };
  EXPECT_FALSE(is_expression(with("antialias", int64_t{1}), false));
  EXPECT_FALSE(is_expression(with("exclude_outside", int64_t{1}), false));
  EXPECT_FALSE(is_expression(
      with("coordinate_transformation_mode", std::string("half_pixel_symmetric")), false));
  OpCase unknown = plain;
  unknown.constant = {};
  EXPECT_FALSE(is_expression(unknown, false));
  OpCase whole = plain;
  whole.inputs[0] = integers({1, 6}, {1, 2, 3, 4, 5, 6});
  EXPECT_FALSE(is_expression(whole, false));
}

}  // namespace
}  // namespace redfuser::testing
