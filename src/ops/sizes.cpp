#include "ops/sizes.h"

#include <cstdlib>

#include "base/error.h"
#include "ir/polynomial.h"

namespace redfuser {

std::string shape_text(const ExprPool& pool, std::span<const Expr> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ',';
    text += to_string(pool, shape[i]);
  }
  text += ']';
  return text;
}

std::optional<int64_t> constant_of(Expr size) {
  return size->is_constant() ? std::optional(size->integer) : std::nullopt;
}

DType computing_type(DType dtype) {
  return dtype == DType::Float16 || dtype == DType::BFloat16 ? DType::Float32 : dtype;
}

std::optional<int64_t> constant_count(std::span<const Expr> shape) {
  int64_t count = 1;
  for (Expr size : shape) {
    if (!size->is_constant()) return std::nullopt;
    if (__builtin_mul_overflow(count, size->integer, &count)) {
      user_error("a tensor size overflows 64 bits");
    }
  }
  return count;
}

Expr product_of(ExprPool& pool, std::span<const Expr> sizes) {
  Expr product = pool.integer(1);
  for (Expr size : sizes) product = pool.mul(product, size);
  return product;
}

Expr ceil_div(ExprPool& pool, Expr a, Expr b) {
  return pool.floordiv(pool.add(a, pool.sub(b, pool.integer(1))), b);
}

Expr less(ExprPool& pool, Expr a, Expr b) { return pool.make(ExprOp::Less, {a, b}); }
Expr equal(ExprPool& pool, Expr a, Expr b) { return pool.make(ExprOp::Equal, {a, b}); }

Expr min_of(ExprPool& pool, Expr a, Expr b) {
  if (a->is_constant() || (!b->is_constant() && b->id < a->id)) std::swap(a, b);
  return pool.make(ExprOp::Min, {a, b});
}

Expr max_of(ExprPool& pool, Expr a, Expr b) {
  auto is_closed = [](Expr x) { return x->free_axes.empty() && !x->has_read; };
  if (a->dtype != DType::Int64 || !is_closed(a) || !is_closed(b)) {
    return pool.make(ExprOp::Max, {a, b});
  }
  return pool.select(less(pool, a, b), b, a);
}

// max(p - q, 0) = p - min(p, q): the parts that slices divide a dimension into add up to it.
Expr at_least_zero(ExprPool& pool, Expr x) {
  if (proved_nonnegative(x)) return x;
  const bool is_size = x->dtype == DType::Int64 && x->free_axes.empty() && !x->has_read;
  if (is_size) {
    Polynomial added, taken;
    for (auto& [monomial, coefficient] : to_polynomial(x)) {
      (coefficient > 0 ? added : taken)[monomial] = std::abs(coefficient);
    }
    if (proved_nonnegative(added) && proved_nonnegative(taken)) {
      Expr p = from_polynomial(pool, added), q = from_polynomial(pool, taken);
      return pool.sub(p, min_of(pool, p, q));
    }
  }
  return max_of(pool, x, pool.integer(0));
}

Expr from_end(ExprPool& pool, Expr position, Expr size) {
  if (proved_nonnegative(position)) return position;
  return pool.select(less(pool, position, pool.integer(0)), pool.add(position, size), position);
}

Expr clamp_index(ExprPool& pool, Expr index, Expr size) {
  Expr last = pool.sub(size, pool.integer(1));
  Expr limited = pool.make(ExprOp::Min, {index, last});
  if (proved_nonnegative(limited, {false, {size}})) return limited;
  return max_of(pool, limited, pool.integer(0));
}

Expr data_index(ExprPool& pool, Expr position, Expr size) {
  return clamp_index(pool, from_end(pool, pool.cast(DType::Int64, position), size), size);
}

}  // namespace redfuser
