#include "ir/scalars/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/low_bit.h"
#include "ir/scalars/integers.h"
#include "ir/scalars/operations.h"

namespace redfuser::ir {

double propagate_nan(double a, double b, bool max) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
  return max ? std::max(a, b) : std::min(a, b);
}

static double cast_to(DType dtype, DType from, double value) {
  switch (dtype) {
    case DType::Float32:
    case DType::Float16:
    case DType::BFloat16:
    case DType::Float64:
      return value;  // the executors round; the reference is exact
    case DType::Bool:
      return value != 0;
    case DType::Int64:
      if (from != DType::UInt64) return std::trunc(value);
      break;
    default:
      if (!is_integer(dtype)) return std::trunc(value);
      break;
  }
  const int64_t word = is_integer(from) ? word_of_number(from, value) : 0;
  return number_of_word(
      dtype, is_integer(from) ? wrapped_word(dtype, word) : word_of_number(dtype, value));
}

double cast_between(DType to, DType from, double value) {
  if (to == from) return value;
  if (is_low_bit_float(from)) value = low_bit_value(from, static_cast<uint8_t>(as_int(value)));
  return is_low_bit_float(to) ? low_bit_code(to, static_cast<float>(value))
                              : cast_to(to, from, value);
}

// Integers that are computed as words of tensor elements.
static bool has_words(DType dtype) { return dtype != DType::Int64 && is_integer(dtype); }

// A bitwise operation on int64.
static double of_words(ExprOp op, double a, double b) {
  return static_cast<double>(*word_operation(op, DType::Int64, as_int(a), as_int(b)));
}

// Integers go by their words; false for types and operations that have none.
static bool words_of_binary(ExprOp op, DType dtype, const double* a, const double* b, double* y,
                            size_t count) {
  if (!has_words(dtype)) return false;
  const DType result = scalar_op(op).boolean ? DType::Bool : dtype;
  for (size_t i = 0; i < count; ++i) {
    const auto word =
        word_operation(op, dtype, word_of_number(dtype, a[i]), word_of_number(dtype, b[i]));
    if (!word) return false;
    y[i] = number_of_word(result, *word);
  }
  return true;
}

static bool words_of_unary(ExprOp op, DType dtype, const double* x, double* y, size_t count) {
  if (!has_words(dtype)) return false;
  for (size_t i = 0; i < count; ++i) {
    const auto word = word_operation(op, dtype, word_of_number(dtype, x[i]));
    if (!word) return false;
    y[i] = number_of_word(dtype, *word);
  }
  return true;
}

void binary(ExprOp op, DType dtype, const double* as, const double* bs, double* y, size_t count) {
  if (words_of_binary(op, dtype, as, bs, y, count)) return;
  [[maybe_unused]] const bool real = is_float(dtype);
  switch (op) {
#define RF_BINARY(NAME, REFERENCE, ...)  \
  case ExprOp::NAME:                     \
    for (size_t i = 0; i < count; ++i) { \
      const double a = as[i], b = bs[i]; \
      y[i] = REFERENCE;                  \
    }                                    \
    return;
#include "ir/scalars/operations.def"
    default:
      internal_error("evaluate: no binary operation {}", static_cast<int>(op));
  }
}

void unary(ExprOp op, DType dtype, const double* xs, double* y, size_t count) {
  if (words_of_unary(op, dtype, xs, y, count)) return;
  switch (op) {
#define RF_UNARY(NAME, REFERENCE, ...)   \
  case ExprOp::NAME:                     \
    for (size_t i = 0; i < count; ++i) { \
      const double x = xs[i];            \
      y[i] = REFERENCE;                  \
    }                                    \
    return;
#define RF_UNARY_BITS RF_UNARY
#include "ir/scalars/operations.def"
    default:
      internal_error("evaluate: no unary operation {}", static_cast<int>(op));
  }
}

double binary(ExprOp op, DType dtype, double a, double b) {
  double result = 0;
  binary(op, dtype, &a, &b, &result, 1);
  return result;
}

double unary(ExprOp op, DType dtype, double x) {
  double result = 0;
  unary(op, dtype, &x, &result, 1);
  return result;
}

}  // namespace redfuser::ir
