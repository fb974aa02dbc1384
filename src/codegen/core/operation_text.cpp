// The CUDA text of every operation, with the meaning that src/ir/evaluate.cpp gives it.
#include <cmath>
#include <limits>

#include "base/error.h"
#include "codegen/core/emitter.h"
#include "codegen/core/integer_text.h"
#include "ir/integer_operations.h"

namespace redfuser {
namespace {

// The name of a math function for float or double.
std::string function(std::string_view name, Expr expr, const std::string& x) {
  const bool wide = expr->dtype == DType::Float64;
  return fmt::format("{}{}({})", name, wide ? "" : "f", x);
}

std::string cast_text(Expr expr, const std::string& x) {
  const DType from = expr->args[0]->dtype, to = expr->dtype;
  if (value_type(from) == value_type(to) && (is_float(to) || from == to)) return x;
  if (to == DType::Bool) return fmt::format("({} != 0)", x);
  if (is_float(to) || from == DType::Bool) {
    return fmt::format("static_cast<{}>({})", value_type(to), x);
  }
  return is_float(from) ? to_integer_text(to, x) : integer_cast_text(to, from, x);
}

std::string power_text(Expr expr, const std::string& a, const std::string& b) {
  Expr exponent = expr->args[1];
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

std::string binary_text(Expr expr, const std::string& a, const std::string& b) {
  switch (expr->op) {
    case ExprOp::Sub:
      return fmt::format("{} - {}", a, b);
    case ExprOp::Div:
      return fmt::format("{} / {}", a, b);
    case ExprOp::FloorDiv:
      return function("floor", expr, fmt::format("{} / {}", a, b));
    case ExprOp::FloorMod:
      return fmt::format("floor_mod({}, {})", a, b);
    case ExprOp::TruncMod:
      return function("fmod", expr, a + ", " + b);
    case ExprOp::Pow:
      return power_text(expr, a, b);
    case ExprOp::Min:
      return fmt::format("min_of({}, {})", a, b);
    case ExprOp::Max:
      return fmt::format("max_of({}, {})", a, b);
    case ExprOp::Less:
      return fmt::format("{} < {}", a, b);
    case ExprOp::LessEqual:
      return fmt::format("{} <= {}", a, b);
    case ExprOp::Equal:
      return fmt::format("{} == {}", a, b);
    case ExprOp::And:
      return fmt::format("{} && {}", a, b);
    case ExprOp::Or:
      return fmt::format("{} || {}", a, b);
    case ExprOp::Xor:
      return fmt::format("{} != {}", a, b);
    case ExprOp::BitAnd:
      return fmt::format("{} & {}", a, b);
    case ExprOp::BitOr:
      return fmt::format("{} | {}", a, b);
    case ExprOp::BitXor:
      return fmt::format("{} ^ {}", a, b);
    default:
      internal_error("codegen: no binary operation {}", static_cast<int>(expr->op));
  }
}

std::string_view function_name(ExprOp op) {
  switch (op) {
    case ExprOp::Exp:
      return "exp";
    case ExprOp::Log:
      return "log";
    case ExprOp::Sqrt:
      return "sqrt";
    case ExprOp::Floor:
      return "floor";
    case ExprOp::Ceil:
      return "ceil";
    case ExprOp::Round:
      return "rint";
    case ExprOp::Sin:
      return "sin";
    case ExprOp::Cos:
      return "cos";
    case ExprOp::Tan:
      return "tan";
    case ExprOp::Asin:
      return "asin";
    case ExprOp::Acos:
      return "acos";
    case ExprOp::Atan:
      return "atan";
    case ExprOp::Sinh:
      return "sinh";
    case ExprOp::Cosh:
      return "cosh";
    case ExprOp::Tanh:
      return "tanh";
    case ExprOp::Asinh:
      return "asinh";
    case ExprOp::Acosh:
      return "acosh";
    case ExprOp::Atanh:
      return "atanh";
    case ExprOp::Erf:
      return "erf";
    default:
      return "";
  }
}

std::string unary_text(Expr expr, const std::string& x, bool fast_exp) {
  const bool real = is_float(expr->args[0]->dtype);
  switch (expr->op) {
    case ExprOp::Not:
      return fmt::format("!{}", x);
    case ExprOp::BitNot:
      return fmt::format("~{}", x);
    case ExprOp::Neg:
      return fmt::format("-({})", x);
    case ExprOp::Abs:
      return function("fabs", expr, x);
    case ExprOp::Sign:
      return fmt::format("sign_of({})", x);
    case ExprOp::Reciprocal:
      return fmt::format("1 / {}", x);
    case ExprOp::IsNaN:
      return real ? fmt::format("is_nan({})", x) : "false";
    case ExprOp::IsPosInf:
      return real ? fmt::format("({} == INFINITY_F)", x) : "false";
    case ExprOp::IsNegInf:
      return real ? fmt::format("({} == -INFINITY_F)", x) : "false";
    case ExprOp::Exp:
      if (fast_exp && expr->dtype != DType::Float64) return fmt::format("__expf({})", x);
      break;
    default:
      break;
  }
  const std::string_view name = function_name(expr->op);
  RF_CHECK(!name.empty(), "codegen: no unary operation {}", static_cast<int>(expr->op));
  return function(name, expr, x);
}

std::string plain_text(Expr expr, const std::vector<std::string>& args, bool fast_exp) {
  switch (expr->op) {
    case ExprOp::Cast:
      return cast_text(expr, args[0]);
    case ExprOp::Select:
      return fmt::format("{} ? {} : {}", args[0], args[1], args[2]);
    case ExprOp::Add:
      return n_ary(args, "+");
    case ExprOp::Mul:
      return n_ary(args, "*");
    default:
      return args.size() == 2 ? binary_text(expr, args[0], args[1])
                              : unary_text(expr, args[0], fast_exp);
  }
}

}  // namespace

std::string operation_text(Expr expr, const std::vector<std::string>& args, bool fast_exp) {
  std::string text = is_integer(expr->dtype) ? integer_operation_text(expr, args) : "";
  if (text.empty()) text = plain_text(expr, args, fast_exp);
  if (!leaves_type(expr->op, expr->dtype)) return text;
  return integer_cast_text(expr->dtype, DType::Int64, text);
}

std::string literal(double number, DType dtype) {
  if (dtype == DType::Bool) return number != 0 ? "true" : "false";
  if (!is_float(dtype)) return word_text(dtype, word_of_number(dtype, number));
  if (std::isnan(number)) return "NAN_F";
  if (std::isinf(number)) return number > 0 ? "INFINITY_F" : "(-INFINITY_F)";
  if (dtype == DType::Float64) return fmt::format("({:.17g} + 0.0)", number);
  // Hexadecimal floats are exact, and say that they are floats.
  return fmt::format("({:a}f)", static_cast<double>(static_cast<float>(number)));
}

bool is_ranked(Reduction r) { return r == Reduction::TopK || r == Reduction::BottomK; }
bool is_arg(Reduction r) { return r == Reduction::ArgMax || r == Reduction::ArgMin; }
bool wants_large(Reduction r) {
  return r == Reduction::Max || r == Reduction::ArgMax || r == Reduction::TopK;
}

std::string identity_of(Reduction reduction, DType dtype) {
  const double infinity = std::numeric_limits<double>::infinity();
  const bool words = is_integer(dtype);
  switch (reduction) {
    case Reduction::Sum:
      return is_float(dtype) ? fmt::format("{}(0)", value_type(dtype)) : literal(0, dtype);
    case Reduction::Prod:
      return is_float(dtype) ? fmt::format("{}(1)", value_type(dtype)) : literal(1, dtype);
    case Reduction::Max:
      if (words) return word_text(dtype, lowest_word(dtype));
      return literal(is_float(dtype) ? -infinity : 0, dtype);
    case Reduction::Min:
      if (words) return word_text(dtype, highest_word(dtype));
      return literal(is_float(dtype) ? infinity : 1, dtype);
    default:
      internal_error("codegen: {} has no identity", name_of(reduction));
  }
}

std::string_view combiner_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::Sum:
      return "SumOp";
    case Reduction::Prod:
      return "ProdOp";
    case Reduction::Max:
      return "MaxOp";
    case Reduction::Min:
      return "MinOp";
    default:
      return wants_large(reduction) ? "FirstLargeOp" : "FirstSmallOp";
  }
}

}  // namespace redfuser
