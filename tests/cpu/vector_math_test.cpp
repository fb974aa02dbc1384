// The vector kernels of elementary functions against those of the C library in double.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "cpu/simd/kernel_table.h"

namespace redfuser::testing {
namespace {

using cpu::Elem;
using cpu::UnaryOp;

struct Function {
  const char* name;
  UnaryOp op;
  double (*reference)(double);
  double most;  // units in the last place
};

class VectorMath : public ::testing::TestWithParam<Function> {};

// Of all signs and exponents, denormal ones included, most of them where functions bend.
std::vector<float> arguments() {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> x{0.0f,
                       -0.0f,
                       4.0f,
                       -4.0f,
                       104.5f,
                       -104.5f,
                       88.75f,
                       kInfinity,
                       -kInfinity,
                       std::numeric_limits<float>::quiet_NaN(),
                       std::numeric_limits<float>::denorm_min(),
                       std::numeric_limits<float>::max()};
  std::mt19937 engine(7);
  std::uniform_real_distribution<float> near(-6, 6), wide(-110, 95), exponent(-149, 127);
  for (int i = 0; i < 100000; ++i) {
    const float sign = i % 2 == 0 ? 1.0f : -1.0f;
    x.insert(x.end(), {near(engine), wide(engine), sign * std::exp2(exponent(engine))});
  }
  return x;
}

TEST_P(VectorMath, IsAccurate) {
  const Function& function = GetParam();
  const std::vector<float> x = arguments();
  std::vector<float> y(x.size());
  const auto count = static_cast<int64_t>(x.size());
  cpu::kernels().unary[static_cast<int>(Elem::F32)][static_cast<int>(function.op)](
      1, count, y.data(), count, {x.data(), count, nullptr});
  for (size_t i = 0; i < x.size(); ++i) {
    const double expected = function.reference(x[i]);
    const auto nearest = static_cast<float>(expected);
    if (!std::isfinite(nearest) || !std::isfinite(y[i])) {
      EXPECT_TRUE(std::isnan(expected) ? std::isnan(y[i]) : y[i] == nearest) << x[i] << " " << y[i];
      continue;
    }
    const double unit = std::max(std::ldexp(1.0, std::ilogb(nearest) - 23), std::ldexp(1.0, -149));
    ASSERT_LE(std::abs(y[i] - expected), function.most * unit) << "of " << x[i];
    ASSERT_EQ(std::signbit(y[i]), std::signbit(nearest)) << "of " << x[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Functions, VectorMath,
                         ::testing::Values(Function{"Exp", UnaryOp::Exp, std::exp, 1.1},
                                           Function{"Erf", UnaryOp::Erf, std::erf, 2.1},
                                           Function{"Tanh", UnaryOp::Tanh, std::tanh, 1.6}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace redfuser::testing
