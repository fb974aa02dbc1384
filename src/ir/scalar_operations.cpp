#include "ir/scalar_operations.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/low_bit.h"
#include "ir/integer_operations.h"

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
      return value;  // rounding is the executor's; the reference is exact
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

// The integers that are computed with as elements are, in words.
static bool has_words(DType dtype) { return dtype != DType::Int64 && is_integer(dtype); }

static bool is_comparison(ExprOp op) {
  return op == ExprOp::Less || op == ExprOp::LessEqual || op == ExprOp::Equal;
}

double binary(ExprOp op, DType dtype, double a, double b) {
  const bool real = is_float(dtype);
  if (!real && has_words(dtype)) {
    const auto word = word_operation(op, dtype, word_of_number(dtype, a), word_of_number(dtype, b));
    if (word) return number_of_word(is_comparison(op) ? DType::Bool : dtype, *word);
  }
  switch (op) {
    case ExprOp::Add:
      return a + b;
    case ExprOp::Mul:
      return a * b;
    case ExprOp::Min:
    case ExprOp::Max:
      return propagate_nan(a, b, op == ExprOp::Max);
    case ExprOp::Sub:
      return a - b;
    case ExprOp::Div:
      return real ? a / b : b == 0 ? 0 : std::trunc(a / b);
    case ExprOp::FloorDiv:
      return b == 0 ? 0 : std::floor(a / b);
    case ExprOp::FloorMod:
      return b == 0 ? 0 : a - b * std::floor(a / b);
    case ExprOp::TruncMod:
      return real ? std::fmod(a, b) : b == 0 ? 0 : a - b * std::trunc(a / b);
    case ExprOp::Pow:
      return real ? std::pow(a, b) : std::trunc(std::pow(a, b));
    case ExprOp::Less:
      return a < b;
    case ExprOp::LessEqual:
      return a <= b;
    case ExprOp::Equal:
      return a == b;
    case ExprOp::And:
      return a != 0 && b != 0;
    case ExprOp::Or:
      return a != 0 || b != 0;
    case ExprOp::Xor:
      return (a != 0) != (b != 0);
    case ExprOp::BitAnd:
      return static_cast<double>(as_int(a) & as_int(b));
    case ExprOp::BitOr:
      return static_cast<double>(as_int(a) | as_int(b));
    case ExprOp::BitXor:
      return static_cast<double>(as_int(a) ^ as_int(b));
    case ExprOp::ShiftLeft:
    case ExprOp::ShiftRight:
      return static_cast<double>(*word_operation(op, DType::Int64, as_int(a), as_int(b)));
    default:
      internal_error("evaluate: no binary operation {}", static_cast<int>(op));
  }
}

double unary(ExprOp op, DType dtype, double x) {
  if (!is_float(dtype) && has_words(dtype)) {
    if (const auto word = word_operation(op, dtype, word_of_number(dtype, x))) {
      return number_of_word(dtype, *word);
    }
  }
  switch (op) {
    case ExprOp::Not:
      return x == 0;
    case ExprOp::BitNot:
      return static_cast<double>(~as_int(x));
    case ExprOp::Neg:
      return -x;
    case ExprOp::Abs:
      return std::abs(x);
    case ExprOp::Sign:
      return std::isnan(x) ? x : (x > 0) - (x < 0);
    case ExprOp::Exp:
      return std::exp(x);
    case ExprOp::Log:
      return std::log(x);
    case ExprOp::Sqrt:
      return std::sqrt(x);
    case ExprOp::Reciprocal:
      return 1 / x;
    case ExprOp::Floor:
      return std::floor(x);
    case ExprOp::Ceil:
      return std::ceil(x);
    case ExprOp::Round:
      return std::nearbyint(x);
    case ExprOp::Sin:
      return std::sin(x);
    case ExprOp::Cos:
      return std::cos(x);
    case ExprOp::Tan:
      return std::tan(x);
    case ExprOp::Asin:
      return std::asin(x);
    case ExprOp::Acos:
      return std::acos(x);
    case ExprOp::Atan:
      return std::atan(x);
    case ExprOp::Sinh:
      return std::sinh(x);
    case ExprOp::Cosh:
      return std::cosh(x);
    case ExprOp::Tanh:
      return std::tanh(x);
    case ExprOp::Asinh:
      return std::asinh(x);
    case ExprOp::Acosh:
      return std::acosh(x);
    case ExprOp::Atanh:
      return std::atanh(x);
    case ExprOp::Erf:
      return std::erf(x);
    case ExprOp::IsNaN:
      return std::isnan(x);
    case ExprOp::IsPosInf:
      return std::isinf(x) && x > 0;
    case ExprOp::IsNegInf:
      return std::isinf(x) && x < 0;
    default:
      internal_error("evaluate: no unary operation {}", static_cast<int>(op));
  }
}

}  // namespace redfuser::ir
