// Pointwise operations of tile programs.
#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "cpu/tile/bytes/words.h"
#include "cpu/tile/interval.h"
#include "cpu/tile/tile_builder.h"
#include "ir/scalars/integers.h"

namespace redfuser::cpu {

RegisterId TileBuilder::compile(ir::Expr expr) {
  for (size_t d = stack_.size(); d-- > 0;) {
    auto found = stack_[d].memo.find(expr);
    if (found != stack_[d].memo.end()) return found->second;
  }
  if (expr->op == ir::ExprOp::Leaf) {
    auto found = leaves_.find(expr);
    RF_CHECK(found != leaves_.end(), "a leaf (kind {}, number {}) has no value in a tile program",
             static_cast<int>(expr->leaf_kind), expr->integer);
    return found->second;
  }
  RegisterId r = tables_ ? build_table(expr) : kNoRegister;
  if (r == kNoRegister) r = build(expr);
  stack_[static_cast<size_t>(info(r).depth)].memo[expr] = r;
  return r;
}

RegisterId TileBuilder::build(ir::Expr expr) {
  switch (expr->op) {
    case ir::ExprOp::Constant:
      return constant(elem_of(expr->dtype), expr->number, expr->integer);
    case ir::ExprOp::Axis:
      return build_axis(expr);
    case ir::ExprOp::Read:
      return build_read(expr);
    case ir::ExprOp::Cast:
      return build_cast(expr);
    case ir::ExprOp::Select:
      return build_select(expr);
    case ir::ExprOp::Reduce:
      return build_reduce(expr);
    default:
      break;
  }
  if (const RegisterId position = build_position(expr); position != kNoRegister) return position;
  if (!leaves_type(expr->op, expr->dtype)) return build_operation(expr);
  const RegisterId words = compile_modular(expr);
  return may_overflow(expr) ? wrapped(words, expr->dtype) : words;
}

RegisterId TileBuilder::build_operation(ir::Expr expr) {
  return expr->op == ir::ExprOp::Pow ? build_power(expr) : build_arithmetic(expr);
}

// Elements of fewer bits than a byte are stored as they are. A store rounds floats to 16 bits, and
// wraps integers.
RegisterId TileBuilder::compile_to_store(ir::Expr expr) {
  if (moves_words(expr)) return compile_words(expr);
  if (expr->op == ir::ExprOp::Cast) {
    const DType from = expr->args[0]->dtype, to = expr->dtype;
    const bool half = to == DType::Float16 || to == DType::BFloat16;
    const bool wraps = is_integer(to) && bits_of(to) >= 8;
    if (is_float(from) && !is_low_bit_float(from) && (half || wraps)) {
      return converted(compile(expr->args[0]), elem_of(to));
    }
    if (is_integer(from) && wraps) return compile_bits(expr->args[0], bits_of(to));
  }
  return bits_of(expr->dtype) < 8 ? compile(expr) : compile_modular(expr);
}

RegisterId TileBuilder::compile_bits(ir::Expr expr, int bits) {
  if (bits > bits_of(expr->dtype)) return compile(expr);
  const bool words = expr->dtype == DType::UInt32 && moves_words(expr);
  return words ? compile_words(expr) : compile_modular(expr);
}

RegisterId TileBuilder::compile_modular(ir::Expr expr) {
  if (!leaves_type(expr->op, expr->dtype)) return compile(expr);
  for (size_t d = stack_.size(); d-- > 0;) {
    auto found = stack_[d].modular.find(expr);
    if (found != stack_[d].modular.end()) return found->second;
  }
  const RegisterId r = build_operation(expr);
  stack_[static_cast<size_t>(info(r).depth)].modular[expr] = r;
  return r;
}

namespace {

std::optional<UnaryOp> unary_of(ir::ExprOp op) {
  switch (op) {
#define RF_UNARY(NAME, REFERENCE, ...) \
  case ir::ExprOp::NAME:               \
    return UnaryOp::NAME;
#define RF_UNARY_BITS RF_UNARY
#include "ir/scalars/operations.def"
    default:
      return std::nullopt;
  }
}

std::optional<BinaryOp> binary_of(ir::ExprOp op) {
  switch (op) {
#define RF_BINARY(NAME, REFERENCE, ...) \
  case ir::ExprOp::NAME:                \
    return BinaryOp::NAME;
#include "ir/scalars/operations.def"
    default:
      return std::nullopt;
  }
}

}  // namespace

RegisterId TileBuilder::build_arithmetic(ir::Expr expr) {
  ir::Expr first = expr->args[0];
  if (expr->op == ir::ExprOp::Exp && first->op == ir::ExprOp::Sub) {
    const Elem elem = elem_of(first->dtype);
    return binary(BinaryOp::ExpSub, converted(compile(first->args[0]), elem),
                  converted(compile(first->args[1]), elem));
  }
  if (expr->op == ir::ExprOp::Exp && first->op == ir::ExprOp::Neg && is_float(first->dtype)) {
    const Elem elem = elem_of(first->dtype);
    return binary(BinaryOp::ExpSub, constant(elem, 0, 0), converted(compile(first->args[0]), elem));
  }
  const bool modular = is_modular(expr->op) && leaves_type(expr->op, expr->dtype);
  auto operand = [&](ir::Expr arg) { return modular ? compile_modular(arg) : compile(arg); };
  if (auto op = unary_of(expr->op)) {
    return unary(*op, operand(first), elem_of(expr->dtype));
  }
  auto op = binary_of(expr->op);
  RF_CHECK(op, "no CPU kernel for expression operation {}", static_cast<int>(expr->op));
  const bool logical =
      expr->op == ir::ExprOp::And || expr->op == ir::ExprOp::Or || expr->op == ir::ExprOp::Xor;
  const Elem elem = logical ? Elem::Bool : elem_of(first->dtype);
  // Operands that vary least are combined first.
  std::vector<ir::Expr> args = expr->args;
  if (expr->dtype == DType::Int64 && args.size() > 2) {
    std::stable_sort(args.begin(), args.end(), [&](ir::Expr a, ir::Expr b) {
      return static_cast<int>(variation(a).shape) < static_cast<int>(variation(b).shape);
    });
  }
  RegisterId result = converted(operand(args[0]), elem);
  for (size_t i = 1; i < args.size(); ++i) {
    result = binary(*op, result, converted(operand(args[i]), elem));
  }
  return result;
}

// x^n of a float by squares in double, whose rounding a float does not show: x^(2k) = (x^k)².
RegisterId TileBuilder::power_by_products(RegisterId x, int64_t power) {
  RegisterId square = converted(x, Elem::F64);
  std::optional<RegisterId> result;
  for (int64_t rest = std::abs(power); rest > 0; rest >>= 1) {
    if (rest & 1) result = result ? binary(BinaryOp::Mul, *result, square) : square;
    if (rest > 1) square = binary(BinaryOp::Mul, square, square);
  }
  if (power < 0) result = unary(UnaryOp::Reciprocal, *result, Elem::F64);
  return converted(*result, Elem::F32);
}

RegisterId TileBuilder::build_power(ir::Expr expr) {
  ir::Expr base = expr->args[0], exponent = expr->args[1];
  const Elem elem = elem_of(base->dtype);
  if (exponent->is_constant() && is_float(base->dtype)) {
    const double power =
        is_float(exponent->dtype) ? exponent->number : static_cast<double>(exponent->integer);
    const RegisterId x = compile(base);
    if (power == 1) return x;
    if (power == 2) return binary(BinaryOp::Mul, x, x);
    if (power == 3) return binary(BinaryOp::Mul, binary(BinaryOp::Mul, x, x), x);
    if (power == 0.5) return unary(UnaryOp::Sqrt, x, elem);
    if (power == -1) return unary(UnaryOp::Reciprocal, x, elem);
    constexpr double kMostProducts = 64;
    if (elem == Elem::F32 && power == std::floor(power) && power != 0 &&
        std::abs(power) <= kMostProducts) {
      return power_by_products(x, static_cast<int64_t>(power));
    }
  }
  if (!is_float(base->dtype) && is_float(exponent->dtype)) {
    const RegisterId power = binary(BinaryOp::Pow, converted(compile(base), Elem::F64),
                                    converted(compile(exponent), Elem::F64));
    return converted(converted(power, Elem::I64), elem);
  }
  // A 64-bit exponent keeps its bits.
  const Elem common = elem == Elem::I32 ? elem_of(exponent->dtype) : elem;
  return converted(
      binary(BinaryOp::Pow, converted(compile(base), common), converted(compile(exponent), common)),
      elem);
}

}  // namespace redfuser::cpu
