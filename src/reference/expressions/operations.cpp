#include "reference/expressions/operations.h"

#include "base/half.h"
#include "base/low_bit.h"
#include "ir/scalars/integers.h"
#include "reference/expressions/real_operations.h"
#include "reference/expressions/word_operations.h"
#include "reference/expressions/zip.h"

namespace redfuser::reference {
namespace {

Numbers as_numbers(DType from, const Lanes& x) {
  if (is_float(from)) return x.numbers;
  if (is_low_bit_float(from)) {
    return x.words.unaryExpr([from](int64_t code) {
      return static_cast<double>(low_bit_value(from, static_cast<uint8_t>(code)));
    });
  }
  if (from == DType::UInt64) {
    return x.words.unaryExpr(
        [](int64_t bits) { return static_cast<double>(static_cast<uint64_t>(bits)); });
  }
  return x.words.cast<double>();
}

Lanes cast(DType to, DType from, const Lanes& x) {
  const bool of_words = !is_float(from) && !is_low_bit_float(from);
  if (to == DType::Bool && of_words) {
    return lanes(Words(x.words.unaryExpr([](int64_t a) { return word(a != 0); })));
  }
  if (is_integer(to) && of_words) {
    return lanes(Words(x.words.unaryExpr([to](int64_t a) { return wrapped(to, a); })));
  }
  const Numbers numbers = as_numbers(from, x);
  if (is_float(to)) return lanes(numbers);
  if (to == DType::Bool) {
    return lanes(Words(numbers.unaryExpr([](double a) { return word(a != 0); })));
  }
  if (is_integer(to)) {
    return lanes(Words(numbers.unaryExpr([to](double a) { return ir::word_of_number(to, a); })));
  }
  // A single rounding.
  return lanes(Words(numbers.unaryExpr(
      [to](double a) { return int64_t{low_bit_code(to, double_to_float_odd(a))}; })));
}

template <typename T>
Array<T> selected(const Words& condition, const Array<T>& then, const Array<T>& otherwise) {
  if (condition.size() == 1) return condition[0] != 0 ? then : otherwise;
  const Eigen::Index count = condition.size();
  const auto whole = [count](const Array<T>& x) {
    return x.size() == 1 ? Array<T>(Array<T>::Constant(count, x[0])) : x;
  };
  return (condition != 0).select(whole(then), whole(otherwise));
}

}  // namespace

Lanes operation(ir::Expr expr, std::span<const Lanes* const> args) {
  const DType dtype = expr->args[0]->dtype;
  if (expr->op == ir::ExprOp::Cast) return cast(expr->dtype, dtype, *args[0]);
  if (expr->op == ir::ExprOp::Select) {
    const Words& condition = args[0]->words;
    if (is_float(expr->dtype))
      return lanes(selected(condition, args[1]->numbers, args[2]->numbers));
    return lanes(selected(condition, args[1]->words, args[2]->words));
  }
  if (is_float(dtype)) {
    if (args.size() == 1) return of_real(expr->op, args[0]->numbers);
    return of_reals(expr->op, args[0]->numbers, args[1]->numbers);
  }
  Words result = args.size() == 1 ? of_words(expr->op, dtype, args[0]->words) : args[0]->words;
  for (size_t i = 1; i < args.size(); ++i) {
    result = of_words(expr->op, dtype, result, args[i]->words);
  }
  // A comparison's result is a bool, which this leaves as it is.
  return lanes(Words(result.unaryExpr([expr](int64_t x) { return wrapped(expr->dtype, x); })));
}

}  // namespace redfuser::reference
