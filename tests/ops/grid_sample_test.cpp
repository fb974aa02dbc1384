// GridSample as an expression against its CPU kernel.
#include <gtest/gtest.h>

#include "support/opaque_harness.h"
#include "support/ops_case.h"

namespace redfuser::testing {
namespace {

// Points inside, on and far beyond the borders, between elements and on them, and none at all.
std::vector<float> coordinates(int64_t count) {
  const float special[] = {-1, 1, 0, 0.999f, -1.3f, 2.9f, -7.5f, 1000, -4096, 0.25f, -0.5f};
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) {
    const bool odd = i % 3 == 1;
    values.push_back(odd ? special[i / 3 % 11] : static_cast<float>((i * 37) % 41) / 16 - 1.25f);
  }
  values[5] = static_cast<float>(kNaN);
  values[8] = static_cast<float>(kInf);
  return values;
}

Tensor image(Dims dims) {
  std::vector<float> values;
  for (int64_t i = 0; i < element_count(dims); ++i) {
    values.push_back(static_cast<float>((i * 7 + 3) % 11) - 4);
  }
  return floats(std::move(dims), values);
}

OpCase sample(const Dims& dims, const Dims& grid, const std::string& mode,
              const std::string& padding, int64_t align) {
  OpCase c{.name = "grid", .op = "GridSample"};
  c.inputs = {image(dims), floats(grid, coordinates(element_count(grid)))};
  c.attributes = {{"mode", mode}, {"padding_mode", padding}, {"align_corners", align}};
  const Tensor expected = run_node({c.op, c.inputs, c.attributes})[0];
  c.dims = expected.dims();
  c.values = values_of(expected);
  return c;
}

bool is_expression(const OpCase& c) {
  GraphBuilder builder;
  std::vector<std::pair<ir::ValueId, Tensor>> feeds;
  build(builder, c, true, feeds);
  return builder.graph.nodes[0].def->lower != nullptr;
}

TEST(GridSample, ExpressionAgreesWithTheKernel) {
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    for (const char* padding : {"zeros", "border", "reflection"}) {
      for (int64_t align : {0, 1}) {
        SCOPED_TRACE(fmt::format("{} {} {}", mode, padding, align));
        for (const OpCase& c : {sample({2, 2, 3, 5}, {2, 4, 3, 2}, mode, padding, align),
                                sample({2, 3, 1}, {2, 9, 1}, mode, padding, align)}) {
          EXPECT_TRUE(is_expression(c));
          check(c, false);
          check(c, true);
        }
      }
    }
  }
}

TEST(GridSample, ManyTapsStayOpaque) {
  EXPECT_TRUE(is_expression(sample({1, 1, 2, 2, 2}, {1, 1, 1, 3, 3}, "linear", "zeros", 0)));
  EXPECT_FALSE(is_expression(sample({1, 1, 2, 2, 2}, {1, 1, 1, 3, 3}, "cubic", "zeros", 0)));
}

}  // namespace
}  // namespace redfuser::testing
