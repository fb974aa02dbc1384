#include "codegen/contraction/distribute.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace redfuser::codegen {
namespace {

// ± a · b
struct Product {
  ir::Expr a, b;
  bool negative;
};

// nullopt where the expression is not a sum of products.
std::optional<std::vector<Product>> products_of(ir::Expr e, bool negative = false) {
  if (e->op == ir::ExprOp::Mul) return std::vector<Product>{{e->args[0], e->args[1], negative}};
  if (e->op == ir::ExprOp::Neg) return products_of(e->args[0], !negative);
  if (e->op != ir::ExprOp::Add && e->op != ir::ExprOp::Sub) return std::nullopt;
  auto left = products_of(e->args[0], negative);
  const auto right = products_of(e->args[1], negative != (e->op == ir::ExprOp::Sub));
  if (!left || !right) return std::nullopt;
  left->insert(left->end(), right->begin(), right->end());
  return left;
}

// The other factors of two products that share one.
struct Shared {
  ir::Expr common, first, second;
};
std::optional<Shared> shared(const Product& p, const Product& q) {
  if (p.a == q.a) return Shared{p.a, p.b, q.b};
  if (p.a == q.b) return Shared{p.a, p.b, q.a};
  if (p.b == q.a) return Shared{p.b, p.a, q.b};
  if (p.b == q.b) return Shared{p.b, p.a, q.a};
  return std::nullopt;
}

}  // namespace

ir::Expr distributed(ir::ExprPool& pool, ir::Expr term) {
  constexpr size_t kMost = 2;  // more would be added in another order
  if (term->op != ir::ExprOp::Select || !is_float(term->dtype)) return term;
  const auto first = products_of(term->args[1]);
  auto second = products_of(term->args[2]);
  if (!first || !second || first->size() != second->size() || first->size() > kMost) return term;
  const auto signed_factor = [&](ir::Expr factor, bool negative) {
    return negative ? pool.make(ir::ExprOp::Neg, {factor}) : factor;
  };
  ir::Expr sum = nullptr;
  for (const Product& p : *first) {
    const auto q = std::find_if(second->begin(), second->end(),
                                [&](const Product& each) { return shared(p, each).has_value(); });
    if (q == second->end()) return term;
    const Shared factors = *shared(p, *q);
    ir::Expr chosen = pool.select(term->args[0], signed_factor(factors.first, p.negative),
                                  signed_factor(factors.second, q->negative));
    ir::Expr product = pool.mul(factors.common, chosen);
    sum = sum == nullptr ? product : pool.add(sum, product);
    second->erase(q);
  }
  return sum;
}

}  // namespace redfuser::codegen
