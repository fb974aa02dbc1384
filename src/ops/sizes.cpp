#include "ops/sizes.h"

#include <cstdlib>

#include "base/error.h"
#include "ir/polynomial.h"
#include "ir/ranges.h"

namespace redfuser::ops {

std::string shape_text(const ir::ExprPool& pool, std::span<const ir::Expr> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ',';
    text += to_string(pool, shape[i]);
  }
  text += ']';
  return text;
}

std::optional<int64_t> constant_of(ir::Expr size) {
  return size->is_constant() ? std::optional(size->integer) : std::nullopt;
}

DType computing_type(DType dtype) {
  return dtype == DType::Float16 || dtype == DType::BFloat16 ? DType::Float32 : dtype;
}

std::optional<int64_t> constant_count(std::span<const ir::Expr> shape) {
  int64_t count = 1;
  for (ir::Expr size : shape) {
    if (!size->is_constant()) return std::nullopt;
    if (__builtin_mul_overflow(count, size->integer, &count)) throw ir::CoefficientOverflow();
  }
  return count;
}

ir::Expr product_of(ir::ExprPool& pool, std::span<const ir::Expr> sizes) {
  ir::Expr product = pool.integer(1);
  for (ir::Expr size : sizes) product = pool.mul(product, size);
  return product;
}

ir::Expr ceil_div(ir::ExprPool& pool, ir::Expr a, ir::Expr b) {
  return pool.floordiv(pool.add(a, pool.sub(b, pool.integer(1))), b);
}

ir::Expr less(ir::ExprPool& pool, ir::Expr a, ir::Expr b) {
  return pool.make(ir::ExprOp::Less, {a, b});
}
ir::Expr equal(ir::ExprPool& pool, ir::Expr a, ir::Expr b) {
  return pool.make(ir::ExprOp::Equal, {a, b});
}

ir::Expr min_of(ir::ExprPool& pool, ir::Expr a, ir::Expr b) {
  if (a->is_constant() || (!b->is_constant() && b->id < a->id)) std::swap(a, b);
  return pool.make(ir::ExprOp::Min, {a, b});
}

ir::Expr max_of(ir::ExprPool& pool, ir::Expr a, ir::Expr b) {
  auto is_closed = [](ir::Expr x) { return x->free_axes.empty() && !x->has_read; };
  if (a->dtype != DType::Int64 || !is_closed(a) || !is_closed(b)) {
    return pool.make(ir::ExprOp::Max, {a, b});
  }
  return pool.select(less(pool, a, b), b, a);
}

// max(p - q, 0) = p - min(p, q), so that the slices of a dimension add up to it.
ir::Expr at_least_zero(ir::ExprPool& pool, ir::Expr x) {
  if (proved_nonnegative(x)) return x;
  const bool is_size = x->dtype == DType::Int64 && x->free_axes.empty() && !x->has_read;
  if (is_size) {
    ir::Polynomial added, taken;
    for (auto& [monomial, coefficient] : to_polynomial(x)) {
      (coefficient > 0 ? added : taken)[monomial] = std::abs(coefficient);
    }
    if (proved_nonnegative(added) && proved_nonnegative(taken)) {
      ir::Expr p = from_polynomial(pool, added), q = from_polynomial(pool, taken);
      return pool.sub(p, min_of(pool, p, q));
    }
  }
  return max_of(pool, x, pool.integer(0));
}

ir::Expr from_end(ir::ExprPool& pool, ir::Expr position, ir::Expr size) {
  if (proved_nonnegative(position)) return position;
  return pool.select(less(pool, position, pool.integer(0)), pool.add(position, size), position);
}

ir::Expr clamp_index(ir::ExprPool& pool, ir::Expr index, ir::Expr size) {
  ir::Expr last = pool.sub(size, pool.integer(1));
  ir::Expr limited = pool.make(ir::ExprOp::Min, {index, last});
  if (proved_nonnegative(limited, {false, {size}})) return limited;
  return max_of(pool, limited, pool.integer(0));
}

ir::Expr data_index(ir::ExprPool& pool, ir::Expr position, ir::Expr size) {
  return clamp_index(pool, from_end(pool, pool.cast(DType::Int64, position), size), size);
}

}  // namespace redfuser::ops
