#include "reference/expressions/word_operations.h"

#include "base/error.h"
#include "ir/scalars/integers.h"
#include "reference/expressions/zip.h"

namespace redfuser::reference {
namespace {

// Arithmetic of words modulo 2^64.
int64_t sum(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t difference(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
int64_t product(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

// Quotient towards zero and its remainder, in words that are signed or not.
struct Division {
  int64_t quotient, rest;
};
Division divided(bool is_signed, int64_t a, int64_t b) {
  if (b == 0) return {0, 0};
  if (is_signed && b == -1) return {difference(0, a), 0};
  if (is_signed) return {a / b, a % b};
  const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  return {static_cast<int64_t>(x / y), static_cast<int64_t>(x % y)};
}

Division floored(bool is_signed, int64_t a, int64_t b) {
  const Division to_zero = divided(is_signed, a, b);
  const bool above = is_signed && to_zero.rest != 0 && (a < 0) != (b < 0);
  return above ? Division{to_zero.quotient - 1, to_zero.rest + b} : to_zero;
}

int64_t power(bool is_signed, int64_t base, int64_t exponent) {
  if (is_signed && exponent < 0) {
    if (base == 1) return 1;
    return base == -1 ? (exponent % 2 != 0 ? -1 : 1) : 0;
  }
  int64_t result = 1;
  for (auto left = static_cast<uint64_t>(exponent); left != 0; left /= 2) {
    if (left % 2 != 0) result = product(result, base);
    base = product(base, base);
  }
  return result;
}

int64_t shifted(bool left, bool is_signed, int64_t a, int64_t by) {
  if (by < 0 || by >= 64) return 0;
  if (left) return static_cast<int64_t>(static_cast<uint64_t>(a) << by);
  return is_signed ? a >> by : static_cast<int64_t>(static_cast<uint64_t>(a) >> by);
}

}  // namespace

Words of_words(ir::ExprOp op, DType dtype, const Words& a, const Words& b) {
  const bool has_sign = !ir::is_unsigned(dtype);
  const auto words = [&](auto f) { return zip(a, b, f); };
  switch (op) {
    case ir::ExprOp::Add:
      return words(sum);
    case ir::ExprOp::Sub:
      return words(difference);
    case ir::ExprOp::Mul:
      return words(product);
    case ir::ExprOp::Div:
      return words([=](int64_t x, int64_t y) { return divided(has_sign, x, y).quotient; });
    case ir::ExprOp::TruncMod:
      return words([=](int64_t x, int64_t y) { return divided(has_sign, x, y).rest; });
    case ir::ExprOp::FloorDiv:
      return words([=](int64_t x, int64_t y) { return floored(has_sign, x, y).quotient; });
    case ir::ExprOp::FloorMod:
      return words([=](int64_t x, int64_t y) { return floored(has_sign, x, y).rest; });
    case ir::ExprOp::Pow:
      return words([=](int64_t x, int64_t y) { return power(has_sign, x, y); });
    case ir::ExprOp::Min:
      return words([=](int64_t x, int64_t y) { return less_words(dtype, y, x) ? y : x; });
    case ir::ExprOp::Max:
      return words([=](int64_t x, int64_t y) { return less_words(dtype, x, y) ? y : x; });
    case ir::ExprOp::Less:
      return words([=](int64_t x, int64_t y) { return word(less_words(dtype, x, y)); });
    case ir::ExprOp::LessEqual:
      return words([=](int64_t x, int64_t y) { return word(!less_words(dtype, y, x)); });
    case ir::ExprOp::Equal:
      return words([](int64_t x, int64_t y) { return word(x == y); });
    case ir::ExprOp::And:
      return words([](int64_t x, int64_t y) { return word(x != 0 && y != 0); });
    case ir::ExprOp::Or:
      return words([](int64_t x, int64_t y) { return word(x != 0 || y != 0); });
    case ir::ExprOp::Xor:
      return words([](int64_t x, int64_t y) { return word((x != 0) != (y != 0)); });
    case ir::ExprOp::BitAnd:
      return words([](int64_t x, int64_t y) { return x & y; });
    case ir::ExprOp::BitOr:
      return words([](int64_t x, int64_t y) { return x | y; });
    case ir::ExprOp::BitXor:
      return words([](int64_t x, int64_t y) { return x ^ y; });
    case ir::ExprOp::ShiftLeft:
      return words([=](int64_t x, int64_t y) { return shifted(true, has_sign, x, y); });
    case ir::ExprOp::ShiftRight:
      return words([=](int64_t x, int64_t y) { return shifted(false, has_sign, x, y); });
    default:
      internal_error("reference: no operation {} of integers", static_cast<int>(op));
  }
}

Words of_words(ir::ExprOp op, DType dtype, const Words& a) {
  const bool has_sign = !ir::is_unsigned(dtype);
  switch (op) {
    case ir::ExprOp::Not:
      return a.unaryExpr([](int64_t x) { return word(x == 0); });
    case ir::ExprOp::BitNot:
      return a.unaryExpr([](int64_t x) { return ~x; });
    case ir::ExprOp::Neg:
      return a.unaryExpr([](int64_t x) { return difference(0, x); });
    case ir::ExprOp::Abs:
      return a.unaryExpr([=](int64_t x) { return has_sign && x < 0 ? difference(0, x) : x; });
    case ir::ExprOp::Sign:
      return a.unaryExpr([=](int64_t x) {
        return x == 0 ? int64_t{0} : has_sign && x < 0 ? int64_t{-1} : int64_t{1};
      });
    case ir::ExprOp::Reciprocal:
      return a.unaryExpr([=](int64_t x) { return divided(has_sign, 1, x).quotient; });
    case ir::ExprOp::Floor:
    case ir::ExprOp::Ceil:
    case ir::ExprOp::Round:
      return a;
    case ir::ExprOp::IsNaN:
    case ir::ExprOp::IsPosInf:
    case ir::ExprOp::IsNegInf:
      return Words::Zero(a.size());
    default:
      internal_error("reference: no function {} of an integer", static_cast<int>(op));
  }
}

bool less_words(DType dtype, int64_t a, int64_t b) {
  return dtype == DType::UInt64 ? static_cast<uint64_t>(a) < static_cast<uint64_t>(b) : a < b;
}

int64_t wrapped(DType dtype, int64_t word) {
  if (!is_integer(dtype)) return word;
  const int bits = bits_of(dtype);
  const uint64_t kept = bits == 64 ? static_cast<uint64_t>(word)
                                   : static_cast<uint64_t>(word) & ((uint64_t{1} << bits) - 1);
  const bool negative = !ir::is_unsigned(dtype) && (kept >> (bits - 1)) != 0;
  return negative && bits < 64 ? static_cast<int64_t>(kept) - (int64_t{1} << bits)
                               : static_cast<int64_t>(kept);
}

}  // namespace redfuser::reference
