// compare() and summarize().
#include "redfuser/compare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/half.h"

namespace redfuser {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

Tensor floats(const std::vector<float>& data) {
  Tensor tensor(DType::Float32, {static_cast<int64_t>(data.size())});
  std::copy(data.begin(), data.end(), tensor.as<float>());
  return tensor;
}

Tensor integers(const std::vector<int64_t>& data) {
  Tensor tensor(DType::Int64, {static_cast<int64_t>(data.size())});
  std::copy(data.begin(), data.end(), tensor.as<int64_t>());
  return tensor;
}

struct Row {
  const char* name;
  std::vector<float> got, expected;
  int64_t mismatches;
};

TEST(Compare, CountsMismatches) {
  const Row rows[] = {
      {"equal", {1, 2}, {1, 2}, 0},
      {"within relative", {1000.5f}, {1000}, 0},
      {"beyond relative", {1002}, {1000}, 1},
      {"within absolute", {5e-5f}, {0}, 0},
      {"beyond absolute", {2e-3f}, {0}, 1},
      {"NaN at one place", {kNaN, 1}, {kNaN, 1}, 0},
      {"NaN got", {kNaN}, {1}, 1},
      {"NaN expected", {1}, {kNaN}, 1},
      {"same infinity", {-kInf}, {-kInf}, 0},
      {"other infinity", {kInf}, {-kInf}, 1},
      {"infinity for a number", {kInf}, {3e38f}, 1},
      {"number for an infinity", {3e38f}, {kInf}, 1},
      {"NaN for an infinity", {kNaN}, {kInf}, 1},
      {"empty", {}, {}, 0},
      {"signed zeros", {0.0f}, {-0.0f}, 0},
  };
  for (const Row& row : rows) {
    const Comparison result = compare(row.name, floats(row.got), floats(row.expected));
    EXPECT_EQ(result.mismatches, row.mismatches) << row.name;
    EXPECT_EQ(result.passed, row.mismatches == 0) << row.name;
    EXPECT_FALSE(describe(result).empty());
  }
}

TEST(Compare, FindsTheWorstElement) {
  Tensor got = floats({1, 2, 3, 4, 5, 7}).reshaped({2, 3});
  const Comparison result = compare("x", got, floats({1, 2, 3, 4.1f, 5, 6}).reshaped({2, 3}));
  EXPECT_EQ(result.mismatches, 2);
  EXPECT_EQ(result.worst_index, (Dims{1, 2}));
  EXPECT_EQ(result.worst_got, 7);
  EXPECT_EQ(result.worst_expected, 6);
  EXPECT_EQ(result.worst_absolute, 1);
  EXPECT_NEAR(result.worst_relative, 1.0 / 6, 1e-12);
}

TEST(Compare, CosineOfDirections) {
  EXPECT_NEAR(compare("x", floats({1, 2}), floats({2, 4})).cosine, 1, 1e-12);
  EXPECT_NEAR(compare("x", floats({1, 0}), floats({0, 1})).cosine, 0, 1e-12);
  EXPECT_EQ(compare("x", floats({0, 0}), floats({0, 0})).cosine, 1);
  EXPECT_EQ(compare("x", floats({0, 0}), floats({1, 0})).cosine, 0);
}

TEST(Compare, IntegersHaveNoRelativeTolerance) {
  EXPECT_FALSE(compare("x", integers({1000001}), integers({1000000})).passed);
  Tolerance loose;
  loose.absolute = 1;
  EXPECT_TRUE(compare("x", integers({1000001}), integers({1000000}), loose).passed);
  EXPECT_FALSE(compare("x", integers({INT64_MAX}), integers({INT64_MAX - 2}), loose).passed);
  EXPECT_FALSE(compare("x", integers({INT64_MIN}), integers({INT64_MAX}), loose).passed);
}

TEST(Compare, DtypesAndShapes) {
  Tensor half(DType::Float16, {2});
  half.as<Half>()[0] = Half(1.0f);
  half.as<Half>()[1] = Half(2.0f);
  EXPECT_TRUE(compare("x", half, floats({1, 2})).passed);
  EXPECT_FALSE(compare("x", integers({1, 2}), floats({1, 2})).problem.empty());
  EXPECT_FALSE(compare("x", floats({1, 2}), floats({1, 2}).reshaped({2, 1})).problem.empty());
}

TEST(Compare, FloatsOfTwoTypesAreNoted) {
  Tensor doubles(DType::Float64, {1});
  doubles.as<double>()[0] = 1;
  for (const auto& [got, expected] :
       {std::pair{floats({1}), doubles}, std::pair{doubles, floats({1})}}) {
    const Comparison result = compare("x", got, expected);
    EXPECT_TRUE(result.passed);
    for (const char* part : {"types differ", "float32", "float64"}) {
      EXPECT_NE(describe(result).find(part), std::string::npos) << describe(result);
    }
  }
  EXPECT_FALSE(compare("x", floats({2}), doubles).passed);
  EXPECT_TRUE(compare("x", doubles, doubles).note.empty());
}

TEST(Compare, ToleranceIsFiniteAndNotNegative) {
  for (const double wrong : {-1e-9, static_cast<double>(kInf), static_cast<double>(kNaN)}) {
    EXPECT_THROW(compare("x", floats({1}), floats({1}), {wrong, 0}), UserError) << wrong;
    EXPECT_THROW(compare("x", floats({1}), floats({1}), {0, wrong}), UserError) << wrong;
  }
  EXPECT_TRUE(compare("x", floats({1}), floats({1}), {0, 0}).passed);
}

TEST(Compare, UnitsInTheLastPlace) {
  Tolerance units{0, 0};
  units.units = 2;
  const float next = std::nextafter(1.0f, 2.0f), third = 1 + 3 * (next - 1);
  EXPECT_TRUE(compare("x", floats({1 + 2 * (next - 1)}), floats({1}), units).passed);
  EXPECT_FALSE(compare("x", floats({third}), floats({1}), units).passed);
  EXPECT_TRUE(compare("x", floats({2e-45f}), floats({0}), units).passed);
  EXPECT_FALSE(compare("x", floats({1e-38f}), floats({0}), units).passed);
  EXPECT_FALSE(compare("x", integers({2}), integers({1}), units).passed);
}

TEST(Compare, PairsTensorsByName) {
  const NamedTensors got = {{"a", floats({1})}, {"b", floats({2})}};
  EXPECT_TRUE(compare({{"a", floats({1})}}, {{"out", floats({1})}}).front().passed);
  EXPECT_EQ(compare(got, {{"b", floats({2})}}).size(), 1u);
  EXPECT_THROW(compare(got, {{"c", floats({2})}}), UserError);
  const auto partly = compare(got, {{"a", floats({1})}, {"c", floats({2})}});
  ASSERT_EQ(partly.size(), 2u);
  EXPECT_TRUE(partly[0].passed);
  EXPECT_FALSE(partly[1].passed);
}

TEST(Summarize, LeavesOutWhatIsNotFinite) {
  const Summary summary = summarize(floats({kNaN, -2, 4, kInf, -kInf}));
  EXPECT_EQ(summary.min, -2);
  EXPECT_EQ(summary.max, 4);
  EXPECT_EQ(summary.mean, 1);
  EXPECT_EQ(summary.nan, 1);
  EXPECT_EQ(summary.inf, 2);
  EXPECT_EQ(summarize(floats({})).max, 0);
}

}  // namespace
}  // namespace redfuser
