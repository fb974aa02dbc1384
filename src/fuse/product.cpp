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

// A read in a product less its zero point, which is null for floats and for 0.
struct Factor {
  ir::Expr read = nullptr, zero = nullptr;
  bool operator==(const Factor&) const = default;
};

// p_i = Σ_k a · b_i · scale_i of the reductions, one `a` in all of them.
struct Products {
  ir::Expr k = nullptr;
  Factor a;
  std::vector<Factor> b;
  std::vector<ir::Expr> scales;
  bool of_integers = false;
};

std::optional<Products> product_of(ir::ExprPool& pool, ir::Expr reduce) {
  if (const auto c = ir::as_integer_contraction(reduce)) {
    return Products{c->axis, {c->a, c->a_zero}, {{c->b, c->b_zero}}, {nullptr}, true};
  }
  const auto c = as_contraction(pool, reduce, ir::Operands::FloatsAndCodes);
  if (!c) return std::nullopt;
  return Products{c->axis, {c->a}, {{c->b}}, {c->scale}};
}

std::optional<Products> products_of(ir::ExprPool& pool, const std::vector<ir::Expr>& reductions) {
  Products products;
  for (ir::Expr reduce : reductions) {
    auto next = product_of(pool, reduce);
    if (!next) return std::nullopt;
    if (products.k == nullptr) {
      products = std::move(*next);
      continue;
    }
    if (next->k->extent() != products.k->extent()) return std::nullopt;
    if (next->of_integers != products.of_integers) return std::nullopt;
    Factor a = next->a, b = next->b[0];
    for (ir::Expr* read : {&a.read, &b.read}) {
      *read = pool.substitute(*read, {{next->k, products.k}});
    }
    // The first two operands decide which side is common.
    if (products.b.size() == 1 && a != products.a && b != products.a) {
      std::swap(products.a, products.b[0]);
    }
    if (b == products.a) std::swap(a, b);
    if (a != products.a) return std::nullopt;
    products.b.push_back(b);
    products.scales.push_back(next->scales[0]);
  }
  return products;
}

bool swap_operands(ProductStep& step) {
  if (step.b.size() > 1) return false;
  std::swap(step.m, step.n);
  std::swap(step.a, step.b[0]);
  if (step.of_integers()) std::swap(step.a_zero, step.b_zeros[0]);
  return true;
}

// A zero point that a kernel reads: a constant, or an element found by axes that are not `others`.
bool readable_zero(const ir::Graph& graph, ir::Expr zero, const std::vector<ir::Expr>& axes,
                   const std::vector<ir::Expr>& others) {
  if (zero == nullptr || zero->is_constant()) return true;
  if (zero->op == ir::ExprOp::Cast) zero = zero->args[0];
  const bool byte = zero->dtype == DType::Int8 || zero->dtype == DType::UInt8;
  if (!byte && zero->dtype != DType::Int32) return false;
  if (zero->op != ir::ExprOp::Read || !affine_read(graph, zero, axes)) return false;
  return std::none_of(others.begin(), others.end(),
                      [&](ir::Expr axis) { return zero->depends_on(axis); });
}

bool readable_zeros(const ir::Graph& graph, const ProductStep& step,
                    const std::vector<ir::Expr>& axes) {
  return readable_zero(graph, step.a_zero, axes, step.n) &&
         std::all_of(step.b_zeros.begin(), step.b_zeros.end(),
                     [&](ir::Expr zero) { return readable_zero(graph, zero, axes, step.m); });
}

}  // namespace

std::optional<ProductStep> as_product(const ir::Graph& graph, ir::ValueId value, ir::Expr body,
                                      const std::vector<ir::Expr>& axes) {
  ir::ExprPool& pool = *graph.pool;
  const std::vector<ir::Expr> sums = reductions(body);
  if (sums.empty() || sums.size() > kMaxProducts) return std::nullopt;
  const auto products = products_of(pool, sums);
  if (!products) return std::nullopt;
  // A sum of squares reads one tensor: its operand may be an expression instead.
  if (products->b.size() == 1 && products->a == products->b[0]) return std::nullopt;
  ProductStep step;
  step.value = value;
  step.axes = axes;
  step.k = products->k;
  step.a = products->a.read;
  step.a_zero = products->a.zero;
  for (const Factor& b : products->b) {
    step.b.push_back(b.read);
    if (products->of_integers) step.b_zeros.push_back(b.zero);
  }
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
  if (!readable_zeros(graph, step, loops)) return std::nullopt;
  std::vector<std::pair<ir::Expr, ir::Expr>> leaves;
  for (size_t i = 0; i < sums.size(); ++i) {
    ir::Expr product = pool.leaf(ir::LeafKind::Product, static_cast<int>(i), sums[i]->dtype);
    if (products->scales[i]) product = pool.mul(product, products->scales[i]);
    leaves.emplace_back(sums[i], product);
  }
  step.epilogue = pool.substitute(body, leaves);
  return step;
}

ReduceStep as_reduction(ir::ExprPool& pool, const ProductStep& step) {
  const auto factor = [&](ir::Expr read, DType dtype, ir::Expr zero) {
    read = pool.cast(dtype, read);
    return zero ? pool.sub(read, pool.cast(dtype, zero)) : read;
  };
  const auto product = [&](size_t i) {
    const bool integers = step.of_integers();
    // Sums are wider than 16 bits; the cast around them rounds what the epilogue reads.
    const bool narrow = size_of(step.a->dtype) <= 2;
    const DType dtype = integers ? DType::Int32 : narrow ? DType::Float32 : step.a->dtype;
    ir::Expr term = pool.mul(factor(step.a, dtype, step.a_zero),
                             factor(step.b.at(i), dtype, integers ? step.b_zeros[i] : nullptr));
    return step.k->op == ir::ExprOp::Axis ? pool.reduce(ir::Reduction::Sum, step.k, term) : term;
  };
  ir::Expr body = pool.rewrite(step.epilogue, [&](ir::Expr e) -> ir::Expr {
    if (e->op != ir::ExprOp::Leaf || e->leaf_kind != ir::LeafKind::Product) return nullptr;
    return pool.cast(e->dtype, product(static_cast<size_t>(e->integer)));
  });
  return {step.value, step.axes, body};
}

}  // namespace redfuser::fuse
