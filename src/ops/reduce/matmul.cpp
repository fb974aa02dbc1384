#include "base/error.h"
#include "ops/arguments.h"
#include "ops/broadcast.h"
#include "ops/elementwise.h"
#include "ops/elementwise/quantized.h"
#include "ops/families.h"
#include "ops/reduce/factors.h"

namespace redfuser::ops {
namespace {

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

// A factor of a product: its input, and those of its scale and zero point (none below 0).
struct Factor {
  int input, scale = -1, zero = -1;
  bool is_left = true;
};
constexpr Factor kPlain[] = {{0}, {1, -1, -1, false}}, kInteger[] = {{0, -1, 2}, {1, -1, 3, false}},
                 kQuantized[] = {{0, 1, 2}, {3, 4, 5, false}};

// Scale or zero point `input`: one for all, or one per row of the left or column of the right
// factor.
void check_parameter(InferContext& context, const Factor& factor, int input, const char* what) {
  const Shape &given = context.shape(input), &shape = context.shape(factor.input);
  if (constant_count(given) == 1) return;
  if (given.size() != 1) {
    const std::string text =
        fmt::format("{} of shape {} does not broadcast to factor {} of shape {}", what,
                    shape_text(context.pool(), given), factor.is_left ? 0 : 1,
                    shape_text(context.pool(), shape));
    if (given.size() > shape.size()) context.fail(text);
    for (size_t d = 0; d < given.size(); ++d) {
      context.require_broadcast(given[d], shape[shape.size() - given.size() + d], text);
    }
    return;
  }
  ir::Expr size = !factor.is_left || shape.size() < 2 ? shape.back() : shape[shape.size() - 2];
  if (given[0] != size && !given[0]->is_constant()) {
    context.fail_unknown(
        fmt::format("whether a {} is one for all is known only at run time", what));
  }
  context.require_equal(given[0], size,
                        fmt::format("{} and factor {}", what, factor.is_left ? 0 : 1));
}

// A scale is that of a row or column as a whole.
void check_factor_scale(InferContext& context, const Factor& factor) {
  check_parameter(context, factor, factor.scale, "scale");
  check_scale(context, factor.scale, false);
  const Shape& scale = context.shape(factor.scale);
  if (scale.size() < 2) return;
  ir::Expr along = factor.is_left ? scale.back() : scale[scale.size() - 2];
  if (along->is_constant(1)) return;
  context.fail(fmt::format("scale of shape {} differs along the axis of the sum",
                           shape_text(context.pool(), scale)));
}

void infer_integer_product(InferContext& context, const Factor (&factors)[2], DType dtype) {
  const Shape shape = product_shape(context, factors[1].input);
  for (const Factor& factor : factors) {
    check_operand(context, factor.input, Operand::Integer);
    if (context.has_input(factor.zero)) {
      check_parameter(context, factor, factor.zero, "zero point");
    }
    if (factor.scale >= 0) check_factor_scale(context, factor);
  }
  context.set(0, dtype, shape);
}

void infer_matmul_integer(InferContext& context) {
  infer_integer_product(context, kInteger, DType::Int32);
}

// Inputs 6 and 7 are the scale and the zero point of the result.
void infer_qlinear_matmul(InferContext& context) {
  for (const int input : {6, 7}) {
    const auto count = constant_count(context.shape(input));
    if (count == 1) continue;
    if (!count) {
      context.fail_unknown(
          fmt::format("whether input {} is one number is known only at run time", input));
    }
    context.fail(fmt::format("input {} of shape {} is not one number", input,
                             shape_text(context.pool(), context.shape(input))));
  }
  if (!is_integer(context.dtype(7))) context.fail("the result is not of an integer dtype");
  check_quantized(context, context.dtype(7));
  check_scale(context, 6, true);
  infer_integer_product(context, kQuantized, context.dtype(7));
}

// Scale or zero point `input` of the factor's element at `index`.
ir::Expr parameter(LowerContext& context, const Factor& factor, int input,
                   std::span<const ir::Expr> index) {
  const Shape& shape = context.shape(input);
  if (constant_count(shape) == 1) return only_element(context, input);
  if (shape.size() == 1) {
    const bool row = factor.is_left && index.size() > 1;
    return context.read(input, {row ? index[index.size() - 2] : index.back()});
  }
  return context.read(input,
                      broadcast_index(context.pool(), shape, context.shape(factor.input), index));
}

// An element of a factor: of integers as int32 and less its zero point.
ir::Expr element(LowerContext& context, const Factor& factor, std::vector<ir::Expr> index) {
  ir::ExprPool& pool = context.pool();
  ir::Expr x = context.read(factor.input, index);
  if (factor.zero < 0) return x;
  x = pool.cast(DType::Int32, x);
  if (!context.has_input(factor.zero)) return x;
  return pool.sub(x, pool.cast(DType::Int32, parameter(context, factor, factor.zero, index)));
}

// Σ_k a[batch, m, k] · b[batch, k, n]; a vector has no m (or n). `a`, `b`: indices of the elements.
struct Product {
  ir::Expr sum;
  std::vector<ir::Expr> a, b;
};

Product product(LowerContext& context, const Factor (&factors)[2]) {
  ir::ExprPool& pool = context.pool();
  const Shape &a = context.shape(factors[0].input), &b = context.shape(factors[1].input);
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
  ir::Expr term = pool.mul(element(context, factors[0], at_a), element(context, factors[1], at_b));
  return {pool.reduce(ir::Reduction::Sum, k, term), std::move(at_a), std::move(at_b)};
}

ir::Expr lower_matmul(LowerContext& context) { return product(context, kPlain).sum; }
ir::Expr lower_matmul_integer(LowerContext& context) { return product(context, kInteger).sum; }

ir::Expr lower_qlinear_matmul(LowerContext& context) {
  const Product whole = product(context, kQuantized);
  const Scales scales{parameter(context, kQuantized[0], 1, whole.a),
                      parameter(context, kQuantized[1], 4, whole.b), only_element(context, 6)};
  return quantized_sum(context, whole.sum, scales, only_element(context, 7),
                       context.result().dtype);
}

constexpr OpDef kOps[] = {
    {"MatMul", "", 1, infer_matmul, lower_matmul},
    {"MatMulInteger", "", 10, infer_matmul_integer, lower_matmul_integer},
    {"QLinearMatMul", "", 10, infer_qlinear_matmul, lower_qlinear_matmul},
};

}  // namespace

std::span<const OpDef> matmul_ops() { return kOps; }

}  // namespace redfuser::ops
