#include "codegen/text/integer_text.h"

#include <fmt/format.h>

#include <limits>

#include "codegen/text/scalar_text.h"
#include "codegen/text/type_text.h"
#include "ir/scalars/integers.h"
#include "ir/scalars/operations.h"

namespace redfuser::codegen {
namespace {

// Tensor elements wrap around; the compiler may assume that sizes and indices do not overflow.
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
  if (bits_of(dtype) < 8) {
    return fmt::format("narrow_{}<{}>({})", ir::is_unsigned(dtype) ? "unsigned" : "signed",
                       bits_of(dtype), x);
  }
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
  const ir::ScalarOp& op = ir::scalar_op(expr->op);
  if (!op.cuda_integer.empty()) return scalar_text(op.cuda_integer, dtype, args);
  if (is_element(expr) && dtype != DType::UInt64 && !op.cuda_wrapping.empty()) {
    return scalar_text(op.cuda_wrapping, dtype, args);
  }
  // Texts that name the type.
  switch (expr->op) {
    case ir::ExprOp::Pow:
      return fmt::format("power({}, static_cast<{}>({}))", args[0], value_type(dtype), args[1]);
    case ir::ExprOp::Abs:
      return ir::is_unsigned(dtype) ? args[0] : fmt::format("abs_of({})", args[0]);
    case ir::ExprOp::Reciprocal:
      return fmt::format("trunc_div({}, {})", word_text(dtype, 1), args[0]);
    default:
      return "";
  }
}

}  // namespace redfuser::codegen
