#include "base/low_bit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace redfuser::testing {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Format {
  DType dtype;
  int codes;
  float largest, smallest;  // positive values
};

constexpr Format kFormats[] = {
    {DType::Float8E4M3FN, 256, 448, 0x1p-9f},  {DType::Float8E4M3FNUZ, 256, 240, 0x1p-10f},
    {DType::Float8E5M2, 256, 57344, 0x1p-16f}, {DType::Float8E5M2FNUZ, 256, 57344, 0x1p-17f},
    {DType::Float4E2M1, 16, 6, 0.5f},          {DType::Float8E8M0, 256, 0x1p127f, 0x1p-127f},
};

TEST(LowBit, EveryValueIsItsOwnCode) {
  for (const Format& f : kFormats) {
    float largest = 0, smallest = kInfinity;
    for (int code = 0; code < f.codes; ++code) {
      const float value = low_bit_value(f.dtype, static_cast<uint8_t>(code));
      if (!std::isnan(value)) {
        EXPECT_EQ(low_bit_code(f.dtype, value), code) << name_of(f.dtype);
      }
      if (std::isnan(value)) {
        const uint8_t again = low_bit_code(f.dtype, value);
        EXPECT_TRUE(std::isnan(low_bit_value(f.dtype, again))) << name_of(f.dtype);
      }
      if (std::isfinite(value)) largest = std::max(largest, value);
      if (value > 0) smallest = std::min(smallest, value);
    }
    EXPECT_EQ(largest, f.largest) << name_of(f.dtype);
    EXPECT_EQ(low_bit_maximum(f.dtype), f.largest) << name_of(f.dtype);
    EXPECT_EQ(smallest, f.smallest) << name_of(f.dtype);
  }
}

// The nearest value, found by trying all of them; between two, the even code.
TEST(LowBit, RoundsToNearestEven) {
  for (const Format& f : kFormats) {
    if (f.dtype == DType::Float8E8M0) continue;
    for (float x = f.smallest / 5; x < f.largest; x *= 1.037f) {
      const float got = low_bit_value(f.dtype, low_bit_code(f.dtype, x));
      for (int code = 0; code < f.codes; ++code) {
        const float other = low_bit_value(f.dtype, static_cast<uint8_t>(code));
        if (std::isfinite(other)) {
          EXPECT_LE(std::fabs(got - x), std::fabs(other - x)) << name_of(f.dtype) << " " << x;
        }
      }
    }
  }
  EXPECT_EQ(low_bit_value(DType::Float8E4M3FN, low_bit_code(DType::Float8E4M3FN, 17.0f)), 16);
  EXPECT_EQ(low_bit_value(DType::Float8E4M3FN, low_bit_code(DType::Float8E4M3FN, 19.0f)), 20);
  EXPECT_EQ(low_bit_value(DType::Float4E2M1, low_bit_code(DType::Float4E2M1, 2.5f)), 2);
  EXPECT_EQ(low_bit_value(DType::Float4E2M1, low_bit_code(DType::Float4E2M1, -5.0f)), -4);
  EXPECT_EQ(low_bit_value(DType::Float8E8M0, low_bit_code(DType::Float8E8M0, 2.1f)), 4);
}

TEST(LowBit, BeyondTheLargest) {
  const auto through = [](DType dtype, float x) {
    return low_bit_value(dtype, low_bit_code(dtype, x));
  };
  EXPECT_EQ(through(DType::Float8E4M3FN, 464), 448);
  EXPECT_TRUE(std::isnan(through(DType::Float8E4M3FN, 465)));
  EXPECT_TRUE(std::isnan(through(DType::Float8E4M3FN, -kInfinity)));
  EXPECT_EQ(through(DType::Float8E5M2, 61439), 57344);
  EXPECT_EQ(through(DType::Float8E5M2, 61440), kInfinity);
  EXPECT_EQ(through(DType::Float8E5M2, -1e9f), -kInfinity);
  EXPECT_TRUE(std::isnan(through(DType::Float8E5M2FNUZ, kInfinity)));
  EXPECT_EQ(through(DType::Float4E2M1, -kInfinity), -6);
  EXPECT_FALSE(std::signbit(through(DType::Float8E4M3FNUZ, -1e-9f)));
  EXPECT_TRUE(std::signbit(through(DType::Float8E4M3FN, -1e-9f)));
}

}  // namespace
}  // namespace redfuser::testing
