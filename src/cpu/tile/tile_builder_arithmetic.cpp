// Pointwise operations of tile programs.
#include <algorithm>
#include <optional>

#include "base/error.h"
#include "cpu/tile/specialize.h"
#include "cpu/tile/tile_builder.h"
#include "ir/integer_operations.h"

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
  const RegisterId r = build(expr);
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
  if (!leaves_type(expr->op, expr->dtype)) return build_operation(expr);
  const RegisterId words = compile_modular(expr);
  return may_overflow(expr) ? wrapped(words, expr->dtype) : words;
}

RegisterId TileBuilder::build_operation(ir::Expr expr) {
  return expr->op == ir::ExprOp::Pow ? build_power(expr) : build_arithmetic(expr);
}

// Elements of fewer bits than a byte are stored as they are.
RegisterId TileBuilder::compile_to_store(ir::Expr expr) {
  return bits_of(expr->dtype) < 8 ? compile(expr) : compile_modular(expr);
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
    case ir::ExprOp::Not:
      return UnaryOp::Not;
    case ir::ExprOp::BitNot:
      return UnaryOp::BitNot;
    case ir::ExprOp::Neg:
      return UnaryOp::Neg;
    case ir::ExprOp::Abs:
      return UnaryOp::Abs;
    case ir::ExprOp::Sign:
      return UnaryOp::Sign;
    case ir::ExprOp::Exp:
      return UnaryOp::Exp;
    case ir::ExprOp::Log:
      return UnaryOp::Log;
    case ir::ExprOp::Sqrt:
      return UnaryOp::Sqrt;
    case ir::ExprOp::Reciprocal:
      return UnaryOp::Reciprocal;
    case ir::ExprOp::Floor:
      return UnaryOp::Floor;
    case ir::ExprOp::Ceil:
      return UnaryOp::Ceil;
    case ir::ExprOp::Round:
      return UnaryOp::Round;
    case ir::ExprOp::Sin:
      return UnaryOp::Sin;
    case ir::ExprOp::Cos:
      return UnaryOp::Cos;
    case ir::ExprOp::Tan:
      return UnaryOp::Tan;
    case ir::ExprOp::Asin:
      return UnaryOp::Asin;
    case ir::ExprOp::Acos:
      return UnaryOp::Acos;
    case ir::ExprOp::Atan:
      return UnaryOp::Atan;
    case ir::ExprOp::Sinh:
      return UnaryOp::Sinh;
    case ir::ExprOp::Cosh:
      return UnaryOp::Cosh;
    case ir::ExprOp::Tanh:
      return UnaryOp::Tanh;
    case ir::ExprOp::Asinh:
      return UnaryOp::Asinh;
    case ir::ExprOp::Acosh:
      return UnaryOp::Acosh;
    case ir::ExprOp::Atanh:
      return UnaryOp::Atanh;
    case ir::ExprOp::Erf:
      return UnaryOp::Erf;
    case ir::ExprOp::IsNaN:
      return UnaryOp::IsNaN;
    case ir::ExprOp::IsPosInf:
      return UnaryOp::IsPosInf;
    case ir::ExprOp::IsNegInf:
      return UnaryOp::IsNegInf;
    default:
      return std::nullopt;
  }
}

std::optional<BinaryOp> binary_of(ir::ExprOp op) {
  switch (op) {
    case ir::ExprOp::Add:
      return BinaryOp::Add;
    case ir::ExprOp::Sub:
      return BinaryOp::Sub;
    case ir::ExprOp::Mul:
      return BinaryOp::Mul;
    case ir::ExprOp::Div:
      return BinaryOp::Div;
    case ir::ExprOp::FloorDiv:
      return BinaryOp::FloorDiv;
    case ir::ExprOp::FloorMod:
      return BinaryOp::FloorMod;
    case ir::ExprOp::TruncMod:
      return BinaryOp::TruncMod;
    case ir::ExprOp::Min:
      return BinaryOp::Min;
    case ir::ExprOp::Max:
      return BinaryOp::Max;
    case ir::ExprOp::Less:
      return BinaryOp::Less;
    case ir::ExprOp::LessEqual:
      return BinaryOp::LessEqual;
    case ir::ExprOp::Equal:
      return BinaryOp::Equal;
    case ir::ExprOp::And:
    case ir::ExprOp::BitAnd:
      return BinaryOp::BitAnd;
    case ir::ExprOp::Or:
    case ir::ExprOp::BitOr:
      return BinaryOp::BitOr;
    case ir::ExprOp::Xor:
    case ir::ExprOp::BitXor:
      return BinaryOp::BitXor;
    case ir::ExprOp::ShiftLeft:
      return BinaryOp::ShiftLeft;
    case ir::ExprOp::ShiftRight:
      return BinaryOp::ShiftRight;
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
  // What varies least is combined first.
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
  }
  if (!is_float(base->dtype) && is_float(exponent->dtype)) {
    const RegisterId power = binary(BinaryOp::Pow, converted(compile(base), Elem::F64),
                                    converted(compile(exponent), Elem::F64));
    return converted(power, elem);
  }
  return binary(BinaryOp::Pow, converted(compile(base), elem), converted(compile(exponent), elem));
}

}  // namespace redfuser::cpu
