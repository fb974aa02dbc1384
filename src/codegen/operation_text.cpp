// The CUDA text of every operation, with the meaning that src/ir/evaluate.cpp gives it.
#include <cmath>

#include "base/error.h"
#include "codegen/emitter.h"

namespace redfuser {
namespace {

// The name of a math function for float or double.
std::string function(std::string_view name, Expr expr, const std::string& x) {
  const bool wide = expr->dtype == DType::Float64;
  return fmt::format("{}{}({})", name, wide ? "" : "f", x);
}

std::string cast_text(Expr expr, const std::string& x) {
  const DType from = expr->args[0]->dtype, to = expr->dtype;
  if (value_type(from) == value_type(to) && (is_float(to) || from == to || to == DType::Int64)) {
    return x;
  }
  if (is_float(to)) return fmt::format("static_cast<{}>({})", value_type(to), x);
  if (to == DType::Bool) return fmt::format("({} != 0)", x);
  if (from == DType::Bool) return fmt::format("static_cast<long long>({})", x);
  const std::string whole = is_float(from) ? fmt::format("to_integer({})", x) : x;
  if (to == DType::Int64 || to == DType::UInt64) return whole;
  return fmt::format("static_cast<long long>(static_cast<{}>({}))", storage_type(to), whole);
}

std::string power_text(Expr expr, const std::string& a, const std::string& b) {
  if (!is_float(expr->dtype)) return fmt::format("power({}, static_cast<long long>({}))", a, b);
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
  const bool real = is_float(expr->args[0]->dtype);
  switch (expr->op) {
    case ExprOp::Sub:
      return fmt::format("{} - {}", a, b);
    case ExprOp::Div:
      return real ? fmt::format("{} / {}", a, b) : fmt::format("trunc_div({}, {})", a, b);
    case ExprOp::FloorDiv:
      return real ? function("floor", expr, fmt::format("{} / {}", a, b))
                  : fmt::format("floor_div({}, {})", a, b);
    case ExprOp::FloorMod:
      return fmt::format("floor_mod({}, {})", a, b);
    case ExprOp::TruncMod:
      return real ? function("fmod", expr, a + ", " + b) : fmt::format("trunc_mod({}, {})", a, b);
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
    case ExprOp::ShiftLeft:
      return fmt::format("static_cast<long long>(static_cast<unsigned long long>({}) << ({} & 63))",
                         a, b);
    case ExprOp::ShiftRight:
      return fmt::format("static_cast<long long>(static_cast<unsigned long long>({}) >> ({} & 63))",
                         a, b);
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
      return real ? function("fabs", expr, x) : fmt::format("({0} < 0 ? -({0}) : {0})", x);
    case ExprOp::Sign:
      return fmt::format("sign_of({})", x);
    case ExprOp::Reciprocal:
      return real ? fmt::format("1 / {}", x) : fmt::format("trunc_div(1ll, {})", x);
    case ExprOp::IsNaN:
      return real ? fmt::format("is_nan({})", x) : "false";
    case ExprOp::IsPosInf:
      return real ? fmt::format("({} == INFINITY_F)", x) : "false";
    case ExprOp::IsNegInf:
      return real ? fmt::format("({} == -INFINITY_F)", x) : "false";
    case ExprOp::Floor:
    case ExprOp::Ceil:
    case ExprOp::Round:
      if (!real) return x;
      break;
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

}  // namespace

std::string operation_text(Expr expr, const std::vector<std::string>& args, bool fast_exp) {
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

std::string literal(double number, DType dtype) {
  if (dtype == DType::Bool) return number != 0 ? "true" : "false";
  if (!is_float(dtype)) {
    const auto whole = static_cast<int64_t>(number);
    if (whole == std::numeric_limits<int64_t>::min()) return "(-9223372036854775807ll - 1)";
    return whole < 0 ? fmt::format("({}ll)", whole) : fmt::format("{}ll", whole);
  }
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
  const bool real = is_float(dtype);
  const auto number = [&](int value) {
    return real ? fmt::format("{}({})", value_type(dtype), value) : fmt::format("{}ll", value);
  };
  switch (reduction) {
    case Reduction::Sum:
      return dtype == DType::Bool ? "false" : number(0);
    case Reduction::Prod:
      return dtype == DType::Bool ? "true" : number(1);
    case Reduction::Max:
      return dtype == DType::Bool ? "false"
             : real               ? "(-INFINITY_F)"
                                  : "(-9223372036854775807ll - 1)";
    case Reduction::Min:
      return dtype == DType::Bool ? "true" : real ? "INFINITY_F" : "9223372036854775807ll";
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
