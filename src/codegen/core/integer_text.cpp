#include "codegen/core/integer_text.h"

#include <fmt/format.h>

#include <limits>

#include "codegen/core/kernel_text.h"
#include "ir/integer_operations.h"

namespace redfuser::codegen {
namespace {

// Empty for what C++ has an operator for.
std::string_view function_of(ir::ExprOp op) {
  switch (op) {
    case ir::ExprOp::Div:
      return "trunc_div";
    case ir::ExprOp::FloorDiv:
      return "floor_div";
    case ir::ExprOp::FloorMod:
      return "floor_mod";
    case ir::ExprOp::TruncMod:
      return "trunc_mod";
    case ir::ExprOp::Min:
      return "min_of";
    case ir::ExprOp::Max:
      return "max_of";
    case ir::ExprOp::ShiftLeft:
      return "shift_left";
    case ir::ExprOp::ShiftRight:
      return "shift_right";
    default:
      return "";
  }
}

std::string_view wrapping_function(ir::ExprOp op) {
  switch (op) {
    case ir::ExprOp::Add:
      return "wrapping_add";
    case ir::ExprOp::Sub:
      return "wrapping_sub";
    case ir::ExprOp::Mul:
      return "wrapping_mul";
    default:
      return "";
  }
}

std::string nested_call(std::string_view function, const std::vector<std::string>& args) {
  std::string result = args[0];
  for (size_t i = 1; i < args.size(); ++i) {
    result = fmt::format("{}({}, {})", function, result, args[i]);
  }
  return result;
}

// Elements of tensors wrap around; the compiler may take sizes and indices not to overflow.
bool is_element(ir::Expr expr) {
  return expr->dtype != DType::Int64 || expr->has_read || expr->has_leaf;
}

}  // namespace

std::string word_text(DType dtype, int64_t word) {
  if (dtype == DType::UInt64) return fmt::format("{}ull", static_cast<uint64_t>(word));
  if (word == std::numeric_limits<int64_t>::min()) return "(-9223372036854775807ll - 1)";
  return word < 0 ? fmt::format("({}ll)", word) : fmt::format("{}ll", word);
}

std::string integer_cast_text(DType dtype, DType from, const std::string& x) {
  if (dtype == from || (dtype == DType::Int64 && from != DType::UInt64)) return x;
  if (bits_of(dtype) == 64) return fmt::format("static_cast<{}>({})", value_type(dtype), x);
  return fmt::format("static_cast<long long>(static_cast<{}>({}))", storage_type(dtype), x);
}

std::string to_integer_text(DType dtype, const std::string& x) {
  if (dtype == DType::UInt64) return fmt::format("to_unsigned({})", x);
  const bool narrow = ir::converts_by_int32(dtype);
  return integer_cast_text(dtype, narrow ? DType::Int32 : DType::Int64,
                           fmt::format("{}({})", narrow ? "to_int32" : "to_integer", x));
}

std::string integer_operation_text(ir::Expr expr, const std::vector<std::string>& args) {
  const DType dtype = expr->dtype;
  if (const auto function = function_of(expr->op); !function.empty()) {
    return nested_call(function, args);
  }
  if (is_element(expr) && dtype != DType::UInt64) {
    if (const auto function = wrapping_function(expr->op); !function.empty()) {
      return nested_call(function, args);
    }
    if (expr->op == ir::ExprOp::Neg) return fmt::format("wrapping_sub(0ll, {})", args[0]);
  }
  switch (expr->op) {
    case ir::ExprOp::Pow:
      return fmt::format("power({}, static_cast<{}>({}))", args[0], value_type(dtype), args[1]);
    case ir::ExprOp::Abs:
      return ir::is_unsigned(dtype) ? args[0] : fmt::format("abs_of({})", args[0]);
    case ir::ExprOp::Reciprocal:
      return fmt::format("trunc_div({}, {})", word_text(dtype, 1), args[0]);
    case ir::ExprOp::Floor:
    case ir::ExprOp::Ceil:
    case ir::ExprOp::Round:
      return args[0];
    default:
      return "";
  }
}

}  // namespace redfuser::codegen
