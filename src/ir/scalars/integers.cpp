#include "ir/scalars/integers.h"

#include <cmath>
#include <limits>

#include "base/integers.h"
#include "ir/scalars/operations.h"

namespace redfuser::ir {
namespace {

template <typename T>
T quotient(T a, T b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return wrapping_product(a, b);
  }
  return static_cast<T>(a / b);
}

template <typename T>
T remainder(T a, T b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return 0;
  }
  return static_cast<T>(a % b);
}

// Whether a quotient rounded towards zero is one above its floor.
template <typename T>
bool is_above_floor(T a, T b) {
  return remainder(a, b) != 0 && (a < 0) != (b < 0);
}

template <typename T>
T power(T base, T exponent) {
  if (exponent < 0) {
    if (base == 1) return 1;
    return static_cast<T>(base + 1 == 0 ? (exponent % 2 != 0 ? -1 : 1) : 0);
  }
  T result = 1;
  for (; exponent != 0; exponent /= 2, base = wrapping_product(base, base)) {
    if (exponent % 2 != 0) result = wrapping_product(result, base);
  }
  return result;
}

// T is int64_t or uint64_t, by the order of the type's words.
template <typename T>
std::optional<T> operation(ExprOp op, T a, T b) {
  const bool shifts = b >= 0 && b < 64;
  switch (op) {
    case ExprOp::Add:
      return wrapping_sum(a, b);
    case ExprOp::Sub:
      return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
    case ExprOp::Mul:
      return wrapping_product(a, b);
    case ExprOp::Div:
      return quotient(a, b);
    case ExprOp::FloorDiv:
      return static_cast<T>(quotient(a, b) - (is_above_floor(a, b) ? 1 : 0));
    case ExprOp::FloorMod:
      return static_cast<T>(remainder(a, b) + (is_above_floor(a, b) ? b : 0));
    case ExprOp::TruncMod:
      return remainder(a, b);
    case ExprOp::Pow:
      return power(a, b);
    case ExprOp::Min:
      return a < b ? a : b;
    case ExprOp::Max:
      return a > b ? a : b;
    case ExprOp::Less:
      return a < b;
    case ExprOp::LessEqual:
      return a <= b;
    case ExprOp::Equal:
      return a == b;
    case ExprOp::BitAnd:
      return a & b;
    case ExprOp::BitOr:
      return a | b;
    case ExprOp::BitXor:
      return a ^ b;
    case ExprOp::ShiftLeft:
      return shifts ? static_cast<T>(static_cast<uint64_t>(a) << b) : 0;
    case ExprOp::ShiftRight:
      return shifts ? static_cast<T>(static_cast<uint64_t>(a) >> b) : 0;
    default:
      return std::nullopt;
  }
}

template <typename T>
std::optional<T> operation(ExprOp op, T a) {
  switch (op) {
    case ExprOp::Neg:
      return operation(ExprOp::Sub, T{0}, a);
    case ExprOp::Abs:
      return a < 0 ? operation(ExprOp::Sub, T{0}, a) : a;
    case ExprOp::Sign:
      return static_cast<T>((a > 0) - (a < 0));
    case ExprOp::BitNot:
      return static_cast<T>(~a);
    case ExprOp::Reciprocal:
      return quotient(T{1}, a);
    case ExprOp::Floor:
    case ExprOp::Ceil:
    case ExprOp::Round:
      return a;
    case ExprOp::IsNaN:
    case ExprOp::IsPosInf:
    case ExprOp::IsNegInf:
      return T{0};
    default:
      return std::nullopt;
  }
}

template <typename... Words>
std::optional<int64_t> wrapped_operation(ExprOp op, DType dtype, Words... words) {
  std::optional<int64_t> result;
  if (is_unsigned(dtype)) {
    if (const auto word = operation(op, static_cast<uint64_t>(words)...)) {
      result = static_cast<int64_t>(*word);
    }
  } else {
    result = operation(op, words...);
  }
  if (result && leaves_type(op, dtype)) result = wrapped_word(dtype, *result);
  return result;
}

}  // namespace

bool is_unsigned(DType dtype) {
  switch (dtype) {
    case DType::UInt2:
    case DType::UInt4:
    case DType::UInt8:
    case DType::UInt16:
    case DType::UInt32:
    case DType::UInt64:
      return true;
    default:
      return false;
  }
}

int64_t wrapped_word(DType dtype, int64_t value) {
  if (!is_integer(dtype)) return value;
  const int spare = 64 - bits_of(dtype);
  const auto high = static_cast<uint64_t>(value) << spare;
  return is_unsigned(dtype) ? static_cast<int64_t>(high >> spare)
                            : static_cast<int64_t>(high) >> spare;
}

int64_t lowest_word(DType dtype) { return is_unsigned(dtype) ? 0 : -highest_word(dtype) - 1; }

int64_t highest_word(DType dtype) {
  const int spare = 64 - bits_of(dtype);
  return static_cast<int64_t>(~uint64_t{0} >> (is_unsigned(dtype) ? spare : spare + 1));
}

double number_of_word(DType dtype, int64_t word) {
  return dtype == DType::UInt64 ? static_cast<double>(static_cast<uint64_t>(word))
                                : static_cast<double>(word);
}

bool converts_by_int32(DType dtype) { return bits_of(dtype) <= 16 || dtype == DType::Int32; }

template <typename T>
static int64_t whole_or_lowest(double value) {
  const auto lowest = static_cast<double>(std::numeric_limits<T>::min());
  const bool fits = std::trunc(value) >= lowest && value < -lowest;
  return fits ? static_cast<T>(value) : std::numeric_limits<T>::min();
}

int64_t word_of_number(DType dtype, double value) {
  if (dtype == DType::UInt64 && value >= 0x1p63) {
    return value < 0x1p64 ? static_cast<int64_t>(static_cast<uint64_t>(value)) : 0;
  }
  return wrapped_word(dtype, converts_by_int32(dtype) ? whole_or_lowest<int32_t>(value)
                                                      : whole_or_lowest<int64_t>(value));
}

bool leaves_type(ExprOp op, DType dtype) {
  if (!is_integer(dtype) || bits_of(dtype) == 64) return false;
  switch (scalar_op(op).overflow) {
    case Overflow::Any:
      return true;
    case Overflow::Signed:
      return !is_unsigned(dtype);
    case Overflow::Unsigned:
      return is_unsigned(dtype);
    case Overflow::Never:
      break;
  }
  return false;
}

bool is_modular(ExprOp op) { return scalar_op(op).modular; }

std::optional<int64_t> word_operation(ExprOp op, DType dtype, int64_t a, int64_t b) {
  return wrapped_operation(op, dtype, a, b);
}

std::optional<int64_t> word_operation(ExprOp op, DType dtype, int64_t a) {
  return wrapped_operation(op, dtype, a);
}

}  // namespace redfuser::ir
