#include "ir/fold.h"

#include <algorithm>
#include <cmath>

#include "base/half.h"
#include "base/low_bit.h"
#include "ir/evaluate.h"
#include "ir/polynomial.h"
#include "ir/ranges.h"
#include "ir/scalars/integers.h"
#include "ir/scalars/operations.h"

namespace redfuser::ir {
namespace {

// Exact folding in words. Overflow of int64 is not folded, since sizes must not wrap around.
Expr fold_words(ExprPool& pool, ExprOp op, const std::vector<Expr>& args) {
  if (args.size() > 2) return nullptr;
  const DType dtype = args[0]->dtype;
  const int64_t a = args[0]->integer, b = args.back()->integer;
  const bool divides = op == ExprOp::Div || op == ExprOp::FloorDiv || op == ExprOp::FloorMod ||
                       op == ExprOp::TruncMod;
  if (divides && b == 0) return nullptr;
  // Sums and products of sizes and indices are canonical polynomials.
  if (dtype == DType::Int64 && is_modular(op) && op != ExprOp::BitNot) return nullptr;
  const auto word =
      args.size() == 2 ? word_operation(op, dtype, a, b) : word_operation(op, dtype, a);
  return word ? pool.number_int(*word, result_dtype(op, args)) : nullptr;
}

Expr fold_constants(ExprPool& pool, ExprOp op, const std::vector<Expr>& args) {
  for (Expr arg : args) {
    if (!arg->is_constant()) return nullptr;
  }
  const DType dtype = result_dtype(op, args);
  const auto integer = [](Expr arg) { return is_integer(arg->dtype); };
  if (std::all_of(args.begin(), args.end(), integer)) return fold_words(pool, op, args);
  // Beyond 2^53 doubles are not exact: leave the node as it is.
  for (Expr arg : args) {
    if (!is_float(arg->dtype) && std::abs(static_cast<double>(arg->integer)) > 9e15) return nullptr;
  }
  ExprNode node{op, dtype};
  node.args = args;
  double value = evaluate(&node, [](Expr) { return 0.0; });
  if (dtype == DType::Float32) value = static_cast<float>(value);
  if (!is_float(dtype) && !(std::abs(value) < 9e15)) return nullptr;
  return pool.number(value, dtype);
}

Expr fold_polynomial(ExprPool& pool, ExprOp op, const std::vector<Expr>& args) {
  auto polynomial = [&](int i) { return to_polynomial(args[i]); };
  switch (op) {
    case ExprOp::Add: {
      Polynomial sum;
      for (Expr arg : args) sum = std::move(sum) + to_polynomial(arg);
      return from_polynomial(pool, sum);
    }
    case ExprOp::Sub:
      return from_polynomial(pool, polynomial(0) + scaled(polynomial(1), -1));
    case ExprOp::Neg:
      return from_polynomial(pool, scaled(polynomial(0), -1));
    case ExprOp::Mul: {
      Polynomial product{{{}, 1}};
      for (Expr arg : args) {
        const Polynomial factor = to_polynomial(arg);
        if (!expands(product, factor)) return nullptr;
        product = product * factor;
      }
      return from_polynomial(pool, product);
    }
    case ExprOp::FloorDiv:
      return fold_floor(pool, false, args[0], args[1]);
    case ExprOp::FloorMod:
      return fold_floor(pool, true, args[0], args[1]);
    case ExprOp::Div:
    case ExprOp::TruncMod:
      if (proved_nonnegative(args[0]) &&
          proved_less(pool, pool.integer(0), args[1], nonzero(args[1]))) {
        return fold_floor(pool, op == ExprOp::TruncMod, args[0], args[1]);
      }
      return nullptr;
    case ExprOp::Min:
    case ExprOp::Max: {
      const bool max = op == ExprOp::Max;
      if (args[0] == args[1]) return args[0];
      if (proved_less_equal(pool, args[0], args[1])) return args[max ? 1 : 0];
      if (proved_less_equal(pool, args[1], args[0])) return args[max ? 0 : 1];
      return nullptr;
    }
    case ExprOp::Abs:
      return proved_nonnegative(args[0]) ? args[0] : nullptr;
    case ExprOp::Less:
      if (proved_less(pool, args[0], args[1])) return pool.boolean(true);
      if (proved_less_equal(pool, args[1], args[0])) return pool.boolean(false);
      return nullptr;
    case ExprOp::LessEqual:
      if (proved_less_equal(pool, args[0], args[1])) return pool.boolean(true);
      if (proved_less(pool, args[1], args[0])) return pool.boolean(false);
      return nullptr;
    case ExprOp::Equal:
      if (args[0] == args[1]) return pool.boolean(true);
      if (proved_less(pool, args[0], args[1]) || proved_less(pool, args[1], args[0])) {
        return pool.boolean(false);
      }
      return nullptr;
    default:
      return nullptr;
  }
}

// Tensor elements wrap around, sizes do not: polynomials with coefficients beyond 64 bits are not
// formed.
Expr fold_integer(ExprPool& pool, ExprOp op, const std::vector<Expr>& args) {
  try {
    return fold_polynomial(pool, op, args);
  } catch (const CoefficientOverflow&) {
    const auto of_elements = [](Expr arg) { return arg->has_read || arg->has_leaf; };
    if (std::none_of(args.begin(), args.end(), of_elements)) throw;
    return nullptr;
  }
}

Expr fold_boolean(ExprPool& pool, ExprOp op, const std::vector<Expr>& args) {
  if (op == ExprOp::Not && args[0]->op == ExprOp::Not) return args[0]->args[0];
  if (op != ExprOp::And && op != ExprOp::Or) return nullptr;
  const bool absorbing = op == ExprOp::Or;
  for (int i = 0; i < 2; ++i) {
    if (args[i]->is_constant()) {
      return (args[i]->integer != 0) == absorbing ? pool.boolean(absorbing) : args[1 - i];
    }
  }
  return args[0] == args[1] ? args[0] : nullptr;
}

Expr fold_float(ExprOp op, const std::vector<Expr>& args) {
  switch (op) {
    case ExprOp::Add:
      if (args[0]->is_constant(0)) return args[1];
      [[fallthrough]];
    case ExprOp::Sub:
      return args[1]->is_constant(0) ? args[0] : nullptr;
    case ExprOp::Mul:
      if (args[0]->is_constant(1)) return args[1];
      [[fallthrough]];
    case ExprOp::Div:
    case ExprOp::Pow:
      return args[1]->is_constant(1) ? args[0] : nullptr;
    case ExprOp::Neg:
      return args[0]->op == ExprOp::Neg ? args[0]->args[0] : nullptr;
    case ExprOp::Min:
    case ExprOp::Max:
      return args[0] == args[1] ? args[0] : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace

DType result_dtype(ExprOp op, const std::vector<Expr>& args) {
  if (scalar_op(op).boolean) return DType::Bool;
  if (op == ExprOp::Select) return args[1]->dtype;
  return args[0]->dtype;
}

Expr fold(ExprPool& pool, ExprOp op, const std::vector<Expr>& args) {
  if (op == ExprOp::Select) {
    if (args[0]->is_constant()) return args[0]->integer ? args[1] : args[2];
    return args[1] == args[2] ? args[1] : nullptr;
  }
  if (Expr constant = fold_constants(pool, op, args)) return constant;
  switch (args[0]->dtype) {
    case DType::Int64:
      return fold_integer(pool, op, args);
    case DType::Bool:
      return fold_boolean(pool, op, args);
    default:
      return is_float(args[0]->dtype) ? fold_float(op, args) : nullptr;
  }
}

// Every value of `narrow` is a value of `wide`.
static bool widens(DType narrow, DType wide) {
  return is_float(narrow) && is_float(wide) && size_of(narrow) >= 2 &&
         size_of(wide) > size_of(narrow);
}

// A constant converted to `dtype`; null for low-bit floats and numbers out of the integer type's
// range, which the executors convert.
static Expr fold_constant_cast(ExprPool& pool, DType dtype, Expr value) {
  const DType from = value->dtype;
  if (is_integer(from) && is_integer(dtype)) return pool.number_int(value->integer, dtype);
  if (is_integer(from) && dtype == DType::Float32) {
    // A single rounding.
    const int64_t word = value->integer;
    return pool.number(from == DType::UInt64 ? static_cast<float>(static_cast<uint64_t>(word))
                                             : static_cast<float>(word),
                       dtype);
  }
  double number = value->number;
  if (!is_float(from)) number = number_of_word(from, value->integer);
  if (is_low_bit_float(from)) number = low_bit_value(from, static_cast<uint8_t>(value->integer));
  if (dtype == DType::Float32) return pool.number(static_cast<float>(number), dtype);
  if (dtype == DType::Float64) return pool.number(number, dtype);
  if (dtype == DType::Float16) return pool.number(static_cast<float>(Half(number)), dtype);
  if (dtype == DType::BFloat16) return pool.number(static_cast<float>(BFloat16(number)), dtype);
  if (dtype == DType::Bool) return pool.boolean(number != 0);
  if (!is_integer(dtype)) return nullptr;
  const int64_t word = word_of_number(dtype, number);
  return number_of_word(dtype, word) == std::trunc(number) ? pool.number_int(word, dtype) : nullptr;
}

Expr fold_cast(ExprPool& pool, DType dtype, Expr value) {
  if (value->dtype == dtype) return value;
  if (value->op == ExprOp::Cast && value->args[0]->dtype == dtype && widens(dtype, value->dtype)) {
    return value->args[0];
  }
  if (value->is_constant()) return fold_constant_cast(pool, dtype, value);
  return nullptr;
}

}  // namespace redfuser::ir
