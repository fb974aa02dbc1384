// The CUDA text of every operation, with the meaning that src/ir/evaluate.cpp gives it.
#include <cmath>
#include <limits>

#include "base/error.h"
#include "codegen/core/emitter.h"
#include "codegen/core/integer_text.h"
#include "ir/integer_operations.h"

namespace redfuser::codegen {
namespace {

// The name of a math function for float or double.
std::string function(std::string_view name, ir::Expr expr, const std::string& x) {
  const bool wide = expr->dtype == DType::Float64;
  return fmt::format("{}{}({})", name, wide ? "" : "f", x);
}

std::string cast_text(ir::Expr expr, const std::string& x) {
  const DType from = expr->args[0]->dtype, to = expr->dtype;
  if (value_type(from) == value_type(to) && (is_float(to) || from == to)) return x;
  if (to == DType::Bool) return fmt::format("({} != 0)", x);
  if (is_float(to) || from == DType::Bool) {
    return fmt::format("static_cast<{}>({})", value_type(to), x);
  }
  return is_float(from) ? to_integer_text(to, x) : integer_cast_text(to, from, x);
}

std::string power_text(ir::Expr expr, const std::string& a, const std::string& b) {
  ir::Expr exponent = expr->args[1];
  if (exponent->is_constant(2)) return fmt::format("{0} * {0}", a);
  if (exponent->is_constant(3)) return fmt::format("{0} * {0} * {0}", a);
  return expr->dtype == DType::Float64 ? fmt::format("pow({}, static_cast<double>({}))", a, b)
                                       : fmt::format("powf({}, static_cast<float>({}))", a, b);
}

std::string n_ary(const std::vector<std::string>& args, std::string_view op) {
  std::string result = args[0];
  for (size_t i = 1; i < args.size(); ++i) result += fmt::format(" {} {}", op, args[i]);
  return result;
}

std::string binary_text(ir::Expr expr, const std::string& a, const std::string& b) {
  switch (expr->op) {
    case ir::ExprOp::Sub:
      return fmt::format("{} - {}", a, b);
    case ir::ExprOp::Div:
      return fmt::format("{} / {}", a, b);
    case ir::ExprOp::FloorDiv:
      return function("floor", expr, fmt::format("{} / {}", a, b));
    case ir::ExprOp::FloorMod:
      return fmt::format("floor_mod({}, {})", a, b);
    case ir::ExprOp::TruncMod:
      return function("fmod", expr, a + ", " + b);
    case ir::ExprOp::Pow:
      return power_text(expr, a, b);
    case ir::ExprOp::Min:
      return fmt::format("min_of({}, {})", a, b);
    case ir::ExprOp::Max:
      return fmt::format("max_of({}, {})", a, b);
    case ir::ExprOp::Less:
      return fmt::format("{} < {}", a, b);
    case ir::ExprOp::LessEqual:
      return fmt::format("{} <= {}", a, b);
    case ir::ExprOp::Equal:
      return fmt::format("{} == {}", a, b);
    case ir::ExprOp::And:
      return fmt::format("{} && {}", a, b);
    case ir::ExprOp::Or:
      return fmt::format("{} || {}", a, b);
    case ir::ExprOp::Xor:
      return fmt::format("{} != {}", a, b);
    case ir::ExprOp::BitAnd:
      return fmt::format("{} & {}", a, b);
    case ir::ExprOp::BitOr:
      return fmt::format("{} | {}", a, b);
    case ir::ExprOp::BitXor:
      return fmt::format("{} ^ {}", a, b);
    default:
      internal_error("codegen: no binary operation {}", static_cast<int>(expr->op));
  }
}

std::string_view function_name(ir::ExprOp op) {
  switch (op) {
    case ir::ExprOp::Exp:
      return "exp";
    case ir::ExprOp::Log:
      return "log";
    case ir::ExprOp::Sqrt:
      return "sqrt";
    case ir::ExprOp::Floor:
      return "floor";
    case ir::ExprOp::Ceil:
      return "ceil";
    case ir::ExprOp::Round:
      return "rint";
    case ir::ExprOp::Sin:
      return "sin";
    case ir::ExprOp::Cos:
      return "cos";
    case ir::ExprOp::Tan:
      return "tan";
    case ir::ExprOp::Asin:
      return "asin";
    case ir::ExprOp::Acos:
      return "acos";
    case ir::ExprOp::Atan:
      return "atan";
    case ir::ExprOp::Sinh:
      return "sinh";
    case ir::ExprOp::Cosh:
      return "cosh";
    case ir::ExprOp::Tanh:
      return "tanh";
    case ir::ExprOp::Asinh:
      return "asinh";
    case ir::ExprOp::Acosh:
      return "acosh";
    case ir::ExprOp::Atanh:
      return "atanh";
    case ir::ExprOp::Erf:
      return "erf";
    default:
      return "";
  }
}

std::string unary_text(ir::Expr expr, const std::string& x, bool fast_exp) {
  const bool real = is_float(expr->args[0]->dtype);
  switch (expr->op) {
    case ir::ExprOp::Not:
      return fmt::format("!{}", x);
    case ir::ExprOp::BitNot:
      return fmt::format("~{}", x);
    case ir::ExprOp::Neg:
      return fmt::format("-({})", x);
    case ir::ExprOp::Abs:
      return function("fabs", expr, x);
    case ir::ExprOp::Sign:
      return fmt::format("sign_of({})", x);
    case ir::ExprOp::Reciprocal:
      return fmt::format("1 / {}", x);
    case ir::ExprOp::IsNaN:
      return real ? fmt::format("is_nan({})", x) : "false";
    case ir::ExprOp::IsPosInf:
      return real ? fmt::format("({} == INFINITY_F)", x) : "false";
    case ir::ExprOp::IsNegInf:
      return real ? fmt::format("({} == -INFINITY_F)", x) : "false";
    case ir::ExprOp::Exp:
      if (fast_exp && expr->dtype != DType::Float64) return fmt::format("__expf({})", x);
      break;
    default:
      break;
  }
  const std::string_view name = function_name(expr->op);
  RF_CHECK(!name.empty(), "codegen: no unary operation {}", static_cast<int>(expr->op));
  return function(name, expr, x);
}

std::string plain_text(ir::Expr expr, const std::vector<std::string>& args, bool fast_exp) {
  switch (expr->op) {
    case ir::ExprOp::Cast:
      return cast_text(expr, args[0]);
    case ir::ExprOp::Select:
      return fmt::format("{} ? {} : {}", args[0], args[1], args[2]);
    case ir::ExprOp::Add:
      return n_ary(args, "+");
    case ir::ExprOp::Mul:
      return n_ary(args, "*");
    default:
      return args.size() == 2 ? binary_text(expr, args[0], args[1])
                              : unary_text(expr, args[0], fast_exp);
  }
}

}  // namespace

std::string operation_text(ir::Expr expr, const std::vector<std::string>& args, bool fast_exp) {
  std::string text = is_integer(expr->dtype) ? integer_operation_text(expr, args) : "";
  if (text.empty()) text = plain_text(expr, args, fast_exp);
  if (!leaves_type(expr->op, expr->dtype)) return text;
  return integer_cast_text(expr->dtype, DType::Int64, text);
}

std::string literal(double number, DType dtype) {
  if (dtype == DType::Bool) return number != 0 ? "true" : "false";
  if (!is_float(dtype)) return word_text(dtype, ir::word_of_number(dtype, number));
  if (std::isnan(number)) return "NAN_F";
  if (std::isinf(number)) return number > 0 ? "INFINITY_F" : "(-INFINITY_F)";
  if (dtype == DType::Float64) return fmt::format("({:.17g} + 0.0)", number);
  // Hexadecimal floats are exact, and say that they are floats.
  return fmt::format("({:a}f)", static_cast<double>(static_cast<float>(number)));
}

bool is_ranked(ir::Reduction r) { return r == ir::Reduction::TopK || r == ir::Reduction::BottomK; }
bool is_arg(ir::Reduction r) { return r == ir::Reduction::ArgMax || r == ir::Reduction::ArgMin; }
bool wants_large(ir::Reduction r) {
  return r == ir::Reduction::Max || r == ir::Reduction::ArgMax || r == ir::Reduction::TopK;
}

std::string identity_of(ir::Reduction reduction, DType dtype) {
  const double infinity = std::numeric_limits<double>::infinity();
  const bool words = is_integer(dtype);
  switch (reduction) {
    case ir::Reduction::Sum:
      return is_float(dtype) ? fmt::format("{}(0)", value_type(dtype)) : literal(0, dtype);
    case ir::Reduction::Prod:
      return is_float(dtype) ? fmt::format("{}(1)", value_type(dtype)) : literal(1, dtype);
    case ir::Reduction::Max:
      if (words) return word_text(dtype, ir::lowest_word(dtype));
      return literal(is_float(dtype) ? -infinity : 0, dtype);
    case ir::Reduction::Min:
      if (words) return word_text(dtype, ir::highest_word(dtype));
      return literal(is_float(dtype) ? infinity : 1, dtype);
    default:
      internal_error("codegen: {} has no identity", name_of(reduction));
  }
}

std::string_view combiner_of(ir::Reduction reduction) {
  switch (reduction) {
    case ir::Reduction::Sum:
      return "SumOp";
    case ir::Reduction::Prod:
      return "ProdOp";
    case ir::Reduction::Max:
      return "MaxOp";
    case ir::Reduction::Min:
      return "MinOp";
    default:
      return wants_large(reduction) ? "FirstLargeOp" : "FirstSmallOp";
  }
}

}  // namespace redfuser::codegen
