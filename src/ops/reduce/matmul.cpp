#include "base/error.h"
#include "ops/arguments.h"
#include "ops/broadcast.h"
#include "ops/elementwise.h"
#include "ops/families.h"

namespace redfuser::ops {
namespace {

void check_factors(const NodeView& view) {
  check_operand(view, 0, Operand::Number);
  check_operand(view, 1, Operand::Number);
  if (view.dtype(0) != view.dtype(1)) {
    view.fail(fmt::format("inputs are of dtypes {} and {}", name_of(view.dtype(0)),
                          name_of(view.dtype(1))));
  }
}

std::string factors_text(const NodeView& view, int right) {
  return fmt::format("inner sizes of {} and {}", shape_text(view.pool(), view.shape(0)),
                     shape_text(view.pool(), view.shape(right)));
}

// Prefers a constant size to a symbol.
ir::Expr inner_size(ir::Expr a, ir::Expr b) { return b->is_constant() ? b : a; }

// The batch dimensions of an operand: none for a vector.
Shape batch_of(const Shape& shape) {
  return shape.size() < 2 ? Shape() : Shape(shape.begin(), shape.end() - 2);
}

// The shape of a · b with numpy's rules for vectors and batches; `right` is b's input.
Shape product_shape(InferContext& context, int right) {
  const Shape &a = context.shape(0), &b = context.shape(right);
  if (a.empty() || b.empty()) context.fail("a scalar is no operand of a matrix product");
  context.require_equal(a.back(), b.size() < 2 ? b[0] : b[b.size() - 2],
                        factors_text(context, right));
  Shape shape = context.broadcast(batch_of(a), batch_of(b));
  if (a.size() > 1) shape.push_back(a[a.size() - 2]);
  if (b.size() > 1) shape.push_back(b.back());
  return shape;
}

void infer_matmul(InferContext& context) {
  check_factors(context);
  context.set(0, context.dtype(0), product_shape(context, 1));
}

// One zero point for all, or one per row of the left or column of the right factor.
void check_zero_point(InferContext& context, int factor) {
  const Shape &zero = context.shape(2 + factor), &shape = context.shape(factor);
  if (constant_count(zero) == 1) return;
  if (zero.size() != 1) {
    const std::string what =
        fmt::format("zero point of shape {} does not broadcast to factor {} of shape {}",
                    shape_text(context.pool(), zero), factor, shape_text(context.pool(), shape));
    if (zero.size() > shape.size()) context.fail(what);
    for (size_t d = 0; d < zero.size(); ++d) {
      context.require_broadcast(zero[d], shape[shape.size() - zero.size() + d], what);
    }
    return;
  }
  ir::Expr size = factor == 1 || shape.size() < 2 ? shape.back() : shape[shape.size() - 2];
  if (zero[0] != size && !zero[0]->is_constant()) {
    context.fail_unknown("whether a zero point is one for all is known only at run time");
  }
  context.require_equal(zero[0], size, fmt::format("zero point and factor {}", factor));
}

void infer_matmul_integer(InferContext& context) {
  const Shape shape = product_shape(context, 1);
  for (int i = 0; i < 2; ++i) {
    check_operand(context, i, Operand::Integer);
    if (context.has_input(2 + i)) check_zero_point(context, i);
  }
  context.set(0, DType::Int32, shape);
}

void infer_qlinear_matmul(InferContext& context) {
  context.set(0, context.dtype(7), product_shape(context, 3));
}

ir::Expr factor(LowerContext& context, int input, std::vector<ir::Expr> index) {
  return context.read(input, std::move(index));
}

// An integer factor less its zero point, which is input 2 of the left and 3 of the right factor.
ir::Expr integer_factor(LowerContext& context, int input, std::vector<ir::Expr> index) {
  ir::ExprPool& pool = context.pool();
  ir::Expr x = pool.cast(DType::Int32, context.read(input, index));
  if (!context.has_input(2 + input)) return x;
  Shape shape = context.shape(2 + input);
  ir::Expr zero;
  if (constant_count(shape) == 1) {
    zero = only_element(context, 2 + input);
  } else if (shape.size() == 1) {
    const bool row = input == 0 && index.size() > 1;
    zero = context.read(2 + input, {row ? index[index.size() - 2] : index.back()});
  } else {
    zero = context.read(2 + input, broadcast_index(pool, shape, context.shape(input), index));
  }
  return pool.sub(x, pool.cast(DType::Int32, zero));
}

// Σ_k a[batch, m, k] · b[batch, k, n]; a vector has no m (or n).
template <ir::Expr (*factor_at)(LowerContext&, int, std::vector<ir::Expr>)>
ir::Expr lower_matmul(LowerContext& context) {
  ir::ExprPool& pool = context.pool();
  const Shape &a = context.shape(0), &b = context.shape(1);
  const size_t rows = a.size() > 1, columns = b.size() > 1;
  const size_t batch = context.index().size() - rows - columns;
  const auto index = context.index();
  const auto at_batch = index.first(batch);
  const std::span<const ir::Expr> batch_shape(context.result().shape.data(), batch);
  ir::Expr k = context.loop_axis(0, inner_size(a.back(), columns ? b[b.size() - 2] : b[0]));
  auto at_a = broadcast_index(pool, batch_of(a), batch_shape, at_batch);
  if (rows) at_a.push_back(index[batch]);
  at_a.push_back(k);
  auto at_b = broadcast_index(pool, batch_of(b), batch_shape, at_batch);
  at_b.push_back(k);
  if (columns) at_b.push_back(index.back());
  return pool.reduce(
      ir::Reduction::Sum, k,
      pool.mul(factor_at(context, 0, std::move(at_a)), factor_at(context, 1, std::move(at_b))));
}

struct GemmSizes {
  bool trans_a, trans_b;
  ir::Expr m, n, k_a, k_b;
};

GemmSizes gemm_sizes(const NodeView& view) {
  if (view.rank(0) != 2 || view.rank(1) != 2) {
    view.fail(fmt::format("inputs of shapes {} and {} are not matrices",
                          shape_text(view.pool(), view.shape(0)),
                          shape_text(view.pool(), view.shape(1))));
  }
  const bool ta = view.integer("transA", 0) != 0, tb = view.integer("transB", 0) != 0;
  const Shape &a = view.shape(0), &b = view.shape(1);
  return {ta, tb, a[ta ? 1 : 0], b[tb ? 0 : 1], a[ta ? 0 : 1], b[tb ? 1 : 0]};
}

void infer_gemm(InferContext& context) {
  check_factors(context);
  const GemmSizes sizes = gemm_sizes(context);
  context.require_equal(sizes.k_a, sizes.k_b, factors_text(context, 1));
  const Shape shape{sizes.m, sizes.n};
  if (context.has_input(2)) {
    const Shape& c = context.shape(2);
    const std::string what =
        fmt::format("C of shape {} does not broadcast to {}", shape_text(context.pool(), c),
                    shape_text(context.pool(), shape));
    if (c.size() > 2) context.fail(what);
    for (size_t d = 0; d < c.size(); ++d) {
      context.require_broadcast(c[d], shape[2 - c.size() + d], what);
    }
  }
  context.set(0, context.dtype(0), shape);
}

ir::Expr lower_gemm(LowerContext& context) {
  ir::ExprPool& pool = context.pool();
  const GemmSizes sizes = gemm_sizes(context);
  const DType dtype = context.result().dtype;
  ir::Expr m = context.index()[0], n = context.index()[1];
  ir::Expr k = context.loop_axis(0, inner_size(sizes.k_a, sizes.k_b));
  ir::Expr a = sizes.trans_a ? context.read(0, {k, m}) : context.read(0, {m, k});
  ir::Expr b = sizes.trans_b ? context.read(1, {n, k}) : context.read(1, {k, n});
  ir::Expr result = pool.reduce(ir::Reduction::Sum, k, pool.mul(a, b));
  const double alpha = context.real("alpha", 1), beta = context.real("beta", 1);
  if (alpha != 1) result = pool.mul(pool.number(alpha, dtype), result);
  if (!context.has_input(2) || beta == 0) return result;
  ir::Expr c = context.read_broadcast(2);
  if (beta != 1) c = pool.mul(pool.number(beta, dtype), c);
  return pool.add(result, c);
}

constexpr OpDef kOps[] = {
    {"MatMul", "", 1, infer_matmul, lower_matmul<factor>},
    {"MatMulInteger", "", 10, infer_matmul_integer, lower_matmul<integer_factor>},
    {"QLinearMatMul", "", 10, infer_qlinear_matmul, nullptr},
    {"Gemm", "", 1, infer_gemm, lower_gemm},
};

}  // namespace

std::span<const OpDef> matmul_ops() { return kOps; }

}  // namespace redfuser::ops
