#include "ir/scalar_operations.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/low_bit.h"

namespace redfuser {

double propagate_nan(double a, double b, bool max) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
  return max ? std::max(a, b) : std::min(a, b);
}

static double cast_to(DType dtype, double value) {
  switch (dtype) {
    case DType::Float32:
    case DType::Float16:
    case DType::BFloat16:
    case DType::Float64:
      return value;  // rounding is the executor's; the reference is exact
    case DType::Bool:
      return value != 0;
    case DType::Int32:
      return static_cast<double>(static_cast<int32_t>(as_int(value)));
    case DType::Int16:
      return static_cast<double>(static_cast<int16_t>(as_int(value)));
    case DType::Int8:
      return static_cast<double>(static_cast<int8_t>(as_int(value)));
    case DType::UInt8:
      return static_cast<double>(static_cast<uint8_t>(as_int(value)));
    case DType::UInt16:
      return static_cast<double>(static_cast<uint16_t>(as_int(value)));
    case DType::UInt32:
      return static_cast<double>(static_cast<uint32_t>(as_int(value)));
    case DType::Int4:
      return static_cast<double>(((as_int(value) & 15) ^ 8) - 8);
    case DType::UInt4:
      return static_cast<double>(as_int(value) & 15);
    case DType::Int2:
      return static_cast<double>(((as_int(value) & 3) ^ 2) - 2);
    case DType::UInt2:
      return static_cast<double>(as_int(value) & 3);
    default:
      return std::trunc(value);
  }
}

double cast_between(DType to, DType from, double value) {
  if (to == from) return value;
  if (is_low_bit_float(from)) value = low_bit_value(from, static_cast<uint8_t>(as_int(value)));
  return is_low_bit_float(to) ? low_bit_code(to, static_cast<float>(value)) : cast_to(to, value);
}

double binary(ExprOp op, bool real, double a, double b) {
  switch (op) {
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
      return static_cast<double>(static_cast<uint64_t>(as_int(a)) << (as_int(b) & 63));
    case ExprOp::ShiftRight:
      return static_cast<double>(static_cast<uint64_t>(as_int(a)) >> (as_int(b) & 63));
    default:
      internal_error("evaluate: no binary operation {}", static_cast<int>(op));
  }
}

double unary(ExprOp op, double x) {
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

}  // namespace redfuser
