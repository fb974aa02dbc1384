// The CUDA text of every operation, by src/ir/scalars/operations.def.
#include "codegen/text/operation_text.h"

#include <cmath>
#include <limits>

#include "base/error.h"
#include "codegen/text/integer_text.h"
#include "codegen/text/scalar_text.h"
#include "codegen/text/type_text.h"
#include "ir/scalars/integers.h"
#include "ir/scalars/operations.h"

namespace redfuser::codegen {
namespace {

std::string cast_text(DType to, DType from, const std::string& x) {
  if (to != from && is_low_bit_float(from)) {
    return cast_text(to, DType::Float32, fmt::format("to_float({})", x));
  }
  if (to != from && is_low_bit_float(to)) {
    return fmt::format("to_low_bit<{}>({})", value_type(to), cast_text(DType::Float32, from, x));
  }
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

std::string plain_text(ir::Expr expr, const std::vector<std::string>& args, bool fast_exp) {
  switch (expr->op) {
    case ir::ExprOp::Cast:
      return cast_text(expr->dtype, expr->args[0]->dtype, args[0]);
    case ir::ExprOp::Select:
      return fmt::format("{} ? {} : {}", args[0], args[1], args[2]);
    case ir::ExprOp::Pow:  // constant exponents are products
      return power_text(expr, args[0], args[1]);
    case ir::ExprOp::Exp:  // the one function that fast_exp is about
      if (fast_exp && expr->dtype != DType::Float64) return fmt::format("__expf({})", args[0]);
      break;
    default:
      break;
  }
  const ir::ScalarOp& op = ir::scalar_op(expr->op);
  RF_CHECK(!op.cuda.empty(), "codegen: no operation {} of {}", op.name, name_of(expr->dtype));
  // Integers are neither NaN nor infinite.
  if (op.boolean && args.size() == 1 && !is_float(expr->args[0]->dtype)) return "false";
  return scalar_text(op.cuda, expr->dtype, args);
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
  if (is_low_bit_float(dtype)) {
    return fmt::format("{}({}u)", value_type(dtype), static_cast<int>(number));
  }
  if (!is_float(dtype)) return word_text(dtype, ir::word_of_number(dtype, number));
  if (std::isnan(number)) return "NAN_F";
  if (std::isinf(number)) return number > 0 ? "INFINITY_F" : "(-INFINITY_F)";
  if (dtype == DType::Float64) return fmt::format("({:.17g} + 0.0)", number);
  // Hexadecimal floats are exact, and say that they are floats.
  return fmt::format("({:a}f)", static_cast<double>(static_cast<float>(number)));
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
