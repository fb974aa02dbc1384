// Powers of a constant exponent, which become products, against the C library's in double.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "support/graph_values.h"

namespace redfuser::testing {
namespace {

TEST(Power, OfAConstantExponentIsThatOfTheLibrary) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float special[] = {0.0f, -0.0f,  1.0f,  -1.0f,  kInfinity, -kInfinity,
                           2.0f, 1e-40f, 3e38f, -3e38f, -1e-30f,   std::nanf("")};
  Tensor x(DType::Float32, {300});
  std::mt19937 engine(3);
  std::uniform_real_distribution<float> base(-3, 3);
  for (int64_t i = 0; i < x.size(); ++i) {
    x.as<float>()[i] = i < std::ssize(special) ? special[i] : base(engine);
  }
  for (const float exponent : {-64, -5, -2, -1, 0, 1, 2, 3, 4, 5, 7, 9, 16, 63, 64, 65, 80}) {
    GraphBuilder b;
    b.output(
        b.node("Pow", {b.input("x", DType::Float32, {300}), b.constant(floats({}, {exponent}))}));
    const Tensor y = outputs_of(b.graph, {x})[0];
    for (int64_t i = 0; i < x.size(); ++i) {
      const float from = x.as<float>()[i], got = y.as<float>()[i];
      const auto expected = static_cast<float>(std::pow(double{from}, double{exponent}));
      if (!std::isfinite(expected)) {
        EXPECT_TRUE(std::isnan(expected) ? std::isnan(got) : got == expected)
            << from << " ^ " << exponent << " = " << got;
        continue;
      }
      // Of three products in float: 2^-22.
      EXPECT_NEAR(got, expected, std::abs(expected) * 2.4e-7) << from << " ^ " << exponent;
      EXPECT_EQ(std::signbit(got), std::signbit(expected)) << from << " ^ " << exponent;
    }
  }
}

}  // namespace
}  // namespace redfuser::testing
