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

const Function kFunctions[] = {
    {"Exp", UnaryOp::Exp, std::exp, 1.1},       {"Erf", UnaryOp::Erf, std::erf, 2.1},
    {"Tanh", UnaryOp::Tanh, std::tanh, 1.6},    {"Asin", UnaryOp::Asin, std::asin, 2.6},
    {"Acos", UnaryOp::Acos, std::acos, 1.6},    {"Atan", UnaryOp::Atan, std::atan, 2.1},
    {"Sinh", UnaryOp::Sinh, std::sinh, 0.6},    {"Cosh", UnaryOp::Cosh, std::cosh, 0.6},
    {"Asinh", UnaryOp::Asinh, std::asinh, 0.6}, {"Acosh", UnaryOp::Acosh, std::acosh, 0.6},
    {"Atanh", UnaryOp::Atanh, std::atanh, 0.6}};

INSTANTIATE_TEST_SUITE_P(Functions, VectorMath, ::testing::ValuesIn(kFunctions),
                         [](const auto& info) { return std::string(info.param.name); });

struct DoubleFunction {
  const char* name;
  UnaryOp op;
  long double (*reference)(long double);
  long double most;  // units in the last place
};

class DoubleMath : public ::testing::TestWithParam<DoubleFunction> {};

TEST_P(DoubleMath, IsAccurate) {
  const DoubleFunction& function = GetParam();
  std::vector<double> x;
  for (const float argument : arguments()) {
    for (const double scale : {1.0, 1.0 + 0x1p-30, 7.3}) x.push_back(scale * double{argument});
  }
  std::vector<double> y(x.size());
  const auto count = static_cast<int64_t>(x.size());
  cpu::kernels().unary[static_cast<int>(Elem::F64)][static_cast<int>(function.op)](
      1, count, y.data(), count, {x.data(), count, nullptr});
  for (size_t i = 0; i < x.size(); ++i) {
    const long double expected = function.reference(x[i]);
    const auto nearest = static_cast<double>(expected);
    if (!std::isfinite(nearest) || !std::isfinite(y[i])) {
      EXPECT_TRUE(std::isnan(nearest) ? std::isnan(y[i]) : y[i] == nearest) << x[i] << " " << y[i];
      continue;
    }
    const long double unit =
        std::max(std::ldexp(1.0L, std::ilogb(nearest) - 52), std::ldexp(1.0L, -1074));
    ASSERT_LE(std::abs(y[i] - expected), function.most * unit) << "of " << x[i];
    ASSERT_EQ(std::signbit(y[i]), std::signbit(nearest)) << "of " << x[i];
  }
}

const DoubleFunction kDoubleFunctions[] = {{"Exp", UnaryOp::Exp, std::exp, 1.6L},
                                           {"Tanh", UnaryOp::Tanh, std::tanh, 2.6L}};

INSTANTIATE_TEST_SUITE_P(Functions, DoubleMath, ::testing::ValuesIn(kDoubleFunctions),
                         [](const auto& info) { return std::string(info.param.name); });

// Every pair of the special numbers, and drawn ones: the C library's pow defines the former.
TEST(VectorPower, IsThatOfTheLibrary) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> special{
      0.0f,        -0.0f,        1.0f,      -1.0f,      0.5f,
      -0.5f,       2.0f,         -3.0f,     1e-45f,     3e38f,
      16777215.0f, -16777216.0f, kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()};
  std::vector<float> x, y;
  for (const float a : special) {
    for (const float b : special) x.push_back(a), y.push_back(b);
  }
  std::mt19937 engine(11);
  std::uniform_real_distribution<float> base(-4, 4), exponent(-9, 9);
  for (int i = 0; i < 100000; ++i) {
    x.push_back(base(engine));
    y.push_back(i % 2 == 0 ? std::round(exponent(engine)) : exponent(engine));
  }
  std::vector<float> z(x.size());
  const auto count = static_cast<int64_t>(x.size());
  cpu::kernels().binary[static_cast<int>(Elem::F32)][static_cast<int>(cpu::BinaryOp::Pow)][0](
      1, count, z.data(), count, {x.data(), count, nullptr}, {y.data(), count, nullptr});
  for (size_t i = 0; i < x.size(); ++i) {
    const auto expected = static_cast<float>(std::pow(double{x[i]}, double{y[i]}));
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(z[i])) << x[i] << " ^ " << y[i] << " = " << z[i];
    } else if (std::isinf(expected)) {
      EXPECT_EQ(z[i], expected) << x[i] << " ^ " << y[i];
    } else {
      EXPECT_NEAR(z[i], expected, std::abs(expected) * 1.2e-7) << x[i] << " ^ " << y[i];
      EXPECT_EQ(std::signbit(z[i]), std::signbit(expected)) << x[i] << " ^ " << y[i];
    }
  }
}

}  // namespace
}  // namespace redfuser::testing
