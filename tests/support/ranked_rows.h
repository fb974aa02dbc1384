// Rows to be ranked, with ties, NaN and infinities.
#pragma once

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "redfuser/tensor.h"

namespace redfuser::testing {

// An element of a row. Rows are of six kinds: drawn, few values, rising, zeros of both signs, with
// NaN and infinities, and with all large elements 64 places apart.
inline double drawn(std::mt19937_64& generator, int64_t row, int64_t column, int64_t length) {
  std::normal_distribution<double> normal;
  const double x = normal(generator);
  switch (row % 6) {
    case 1:
      return std::round(x);
    case 2:
      return static_cast<double>(column) / static_cast<double>(length);
    case 3:
      return column % 3 == 0 ? -0.0 : 0.0;
    case 4:
      if (generator() % 32 == 0) return std::nan("");
      if (generator() % 32 == 0) return generator() % 2 ? HUGE_VAL : -HUGE_VAL;
      return x;
    case 5:
      return column % 64 == 5 ? 100 + x : 0.01 * x;
    default:
      return x;
  }
}

inline uint16_t half_bits(double x) {
  if (std::isnan(x)) return 0x7e00;
  const auto sign = static_cast<uint16_t>(std::signbit(x) ? 0x8000 : 0);
  if (std::isinf(x)) return sign | 0x7c00;
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(x), &exponent);
  if (fraction == 0 || exponent < -13) return sign;
  return static_cast<uint16_t>(sign | ((exponent + 14) << 10) |
                               (static_cast<int>(fraction * 2048) & 1023));
}

inline void set_element(Tensor& x, int64_t i, double value) {
  const bool whole = !std::isfinite(value);
  const double scaled = whole ? 0 : value * 1000;
  switch (x.dtype()) {
    case DType::Float32:
      x.as<float>()[i] = static_cast<float>(value);
      break;
    case DType::Float64:
      x.as<double>()[i] = value;
      break;
    case DType::Float16:
      x.as<uint16_t>()[i] = half_bits(value);
      break;
    case DType::BFloat16: {
      const auto single = static_cast<float>(value);
      uint32_t bits = 0;
      std::memcpy(&bits, &single, 4);
      x.as<uint16_t>()[i] = static_cast<uint16_t>(bits >> 16);
      break;
    }
    case DType::Int64:
      x.as<int64_t>()[i] =
          whole ? std::numeric_limits<int64_t>::min() : static_cast<int64_t>(scaled * 1e12);
      break;
    case DType::Int32:
      x.as<int32_t>()[i] =
          whole ? std::numeric_limits<int32_t>::min() : static_cast<int32_t>(scaled);
      break;
    default:
      x.as<uint8_t>()[i] = static_cast<uint8_t>(static_cast<int64_t>(scaled));
  }
}

}  // namespace redfuser::testing
