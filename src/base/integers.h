// Arithmetic of integers that is defined for every operand.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

namespace redfuser {

template <typename T>
inline constexpr bool kIsInteger = std::is_integral_v<T> && !std::is_same_v<T, bool>;

// Sums and products of any arithmetic type; those of integers wrap around.
template <typename T>
T wrapping_sum(T a, T b) {
  T result;
  if constexpr (kIsInteger<T>) {
    (void)__builtin_add_overflow(a, b, &result);
  } else {
    result = static_cast<T>(a + b);
  }
  return result;
}

template <typename T>
T wrapping_product(T a, T b) {
  T result;
  if constexpr (kIsInteger<T>) {
    (void)__builtin_mul_overflow(a, b, &result);
  } else {
    result = static_cast<T>(a * b);
  }
  return result;
}

// Converts a number to T. Numbers outside an integer type saturate; NaN becomes 0.
template <typename T>
T saturated(double value) {
  if constexpr (kIsInteger<T>) {
    using Limits = std::numeric_limits<T>;
    if (std::isnan(value)) return 0;
    // The largest integer plus one is a power of two: the comparison is exact.
    if (value >= static_cast<double>(Limits::max())) return Limits::max();
    if (value <= static_cast<double>(Limits::lowest())) return Limits::lowest();
  }
  return static_cast<T>(value);
}

}  // namespace redfuser
