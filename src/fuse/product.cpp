#include "fuse/product.h"

#include <algorithm>

#include "ir/contraction.h"
#include "ir/polynomial.h"
#include "ir/ranges.h"

namespace redfuser::fuse {
namespace {

constexpr size_t kMaxProducts = 4;  // of one step

// Distinct, in the order of their appearance.
std::vector<ir::Expr> reductions(ir::Expr body) {
  std::vector<ir::Expr> found;
  visit(body, [&](ir::Expr e) {
    if (e->op == ir::ExprOp::Reduce) found.push_back(e);
  });
  return found;
}

// The element's offset in memory is affine in the axes, even if its indices are not.
bool affine_read(const ir::Graph& graph, ir::Expr read, const std::vector<ir::Expr>& axes) {
  ir::ExprPool& pool = *graph.pool;
  const std::vector<ir::Expr>& shape = graph.values[static_cast<size_t>(read->integer)].shape;
  ir::Expr offset = pool.integer(0);
  for (size_t i = 0; i < shape.size(); ++i) {
    if (read->args[i]->has_read) return false;
    offset = pool.add(pool.mul(offset, shape[i]), read->args[i]);
  }
  return std::all_of(axes.begin(), axes.end(), [&](ir::Expr axis) {
    const auto affine = affine_in(pool, offset, axis);
    return affine && affine->stride->free_axes.empty();
  });
}

// Whether two operands never read a common element: they read different values, or one of their
// indices differs by more than the range of the axes.
bool apart(ir::ExprPool& pool, ir::Expr x, ir::Expr y, const std::vector<ir::Expr>& axes) {
  if (x->integer != y->integer) return true;
  for (size_t i = 0; i < x->args.size(); ++i) {
    ir::Expr distance = pool.sub(x->args[i], y->args[i]);
    if (!distance->is_constant() || distance->integer == 0) continue;
    ir::Expr span = pool.integer(1);
    for (ir::Expr axis : axes) {
      const auto affine = affine_in(pool, x->args[i], axis);
      if (!affine || !affine->stride->is_constant()) return false;
      span = pool.add(span, pool.mul(pool.integer(std::abs(affine->stride->integer)),
                                     pool.sub(axis->extent(), pool.integer(1))));
    }
    if (proved_less_equal(pool, span, pool.integer(std::abs(distance->integer)),
                          ir::kWhereElementsExist))
      return true;
  }
  return false;
}

// p_i = Σ_k a · b_i · scale_i of the reductions, one `a` in all of them.
struct Products {
  ir::Expr k = nullptr, a = nullptr;
  std::vector<ir::Expr> b, scales;
};

std::optional<Products> products_of(ir::ExprPool& pool, const std::vector<ir::Expr>& reductions) {
  Products products;
  for (ir::Expr reduce : reductions) {
    auto next = as_contraction(pool, reduce);
    if (!next) return std::nullopt;
    if (products.k == nullptr) {
      products = {next->axis, next->a, {next->b}, {next->scale}};
      continue;
    }
    if (next->axis->extent() != products.k->extent()) return std::nullopt;
    ir::Expr a = pool.substitute(next->a, {{next->axis, products.k}});
    ir::Expr b = pool.substitute(next->b, {{next->axis, products.k}});
    // The first two operands decide which side is common.
    if (products.b.size() == 1 && a != products.a && b != products.a) {
      std::swap(products.a, products.b[0]);
    }
    if (b == products.a) std::swap(a, b);
    if (a != products.a) return std::nullopt;
    products.b.push_back(b);
    products.scales.push_back(next->scale);
  }
  return products;
}

bool swap_operands(ProductStep& step) {
  if (step.b.size() > 1) return false;
  std::swap(step.m, step.n);
  std::swap(step.a, step.b[0]);
  return true;
}

}  // namespace

std::optional<ProductStep> as_product(const ir::Graph& graph, ir::ValueId value, ir::Expr body,
                                      const std::vector<ir::Expr>& axes) {
  ir::ExprPool& pool = *graph.pool;
  const std::vector<ir::Expr> sums = reductions(body);
  if (sums.empty() || sums.size() > kMaxProducts) return std::nullopt;
  const auto products = products_of(pool, sums);
  if (!products) return std::nullopt;
  ProductStep step;
  step.value = value;
  step.axes = axes;
  step.k = products->k;
  step.a = products->a;
  step.b = products->b;
  std::vector<ir::Expr> loops = {step.k};
  for (ir::Expr axis : axes) {
    if (axis->op != ir::ExprOp::Axis) continue;
    const bool a = step.a->depends_on(axis), b = step.b[0]->depends_on(axis);
    if (!a && !b) return std::nullopt;
    (a && b ? step.batch : a ? step.m : step.n).push_back(axis);
    loops.push_back(axis);
  }
  if (!affine_read(graph, step.a, loops)) return std::nullopt;
  for (size_t i = 0; i < step.b.size(); ++i) {
    if (!affine_read(graph, step.b[i], loops)) return std::nullopt;
    for (ir::Expr axis : axes) {
      if (step.b[i]->depends_on(axis) != step.b[0]->depends_on(axis)) return std::nullopt;
    }
    // Equal sums are computed once.
    for (size_t j = 0; j < i; ++j) {
      if (!apart(pool, step.b[i], step.b[j], loops)) return std::nullopt;
    }
  }
  // Swaps the sides if the output's rows are those of b. Several products share their rows.
  if (!step.m.empty() && !step.n.empty()) {
    auto position = [&](ir::Expr axis) { return std::find(axes.begin(), axes.end(), axis); };
    if (position(step.n.back()) < position(step.m.back()) && !swap_operands(step)) {
      return std::nullopt;
    }
  } else if (step.n.empty() && !swap_operands(step)) {
    return std::nullopt;
  }
  std::vector<std::pair<ir::Expr, ir::Expr>> leaves;
  for (size_t i = 0; i < sums.size(); ++i) {
    ir::Expr product = pool.leaf(ir::LeafKind::Product, static_cast<int>(i), sums[i]->dtype);
    if (products->scales[i]) product = pool.mul(product, products->scales[i]);
    leaves.emplace_back(sums[i], product);
  }
  step.epilogue = pool.substitute(body, leaves);
  return step;
}

}  // namespace redfuser::fuse
