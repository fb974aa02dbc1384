#include "reference/expressions/elements.h"

#include <algorithm>

#include "base/error.h"
#include "reference/expressions/product.h"

namespace redfuser::reference {
namespace {

// The free axes of an expression except these.
std::vector<ir::Expr> free_axes(ir::Expr expr, const std::vector<ir::Expr>& but) {
  std::vector<ir::Expr> axes;
  visit(expr, [&](ir::Expr node) {
    const bool is_axis = node->op == ir::ExprOp::Axis && !node->extent()->is_constant(1);
    if (is_axis && std::find(but.begin(), but.end(), node) == but.end()) axes.push_back(node);
  });
  std::sort(axes.begin(), axes.end(),
            [](ir::Expr a, ir::Expr b) { return a->integer < b->integer; });
  return axes;
}

bool is_positional(ir::Expr reduce) {
  return reduce->reduction == ir::Reduction::ArgMax || reduce->reduction == ir::Reduction::ArgMin;
}

}  // namespace

Elements::Elements(ir::ExprPool& pool, std::vector<Tensor> tensors)
    : pool_(pool), tensors_(tensors.begin(), tensors.end()) {}

Source Elements::source() const {
  return [this](int64_t id) -> const Tensor& { return tensors_[static_cast<size_t>(id)]; };
}

Tensor Elements::values(ir::Expr expr, const std::vector<ir::Expr>& axes) {
  Tensor result(held_type(expr->dtype), extents_of(axes));
  if (result.size() == 0) return result;
  Blocks blocks(without_reductions(expr), axes, source());
  blocks.for_each(0, blocks.size(), [&](int64_t first, int64_t count, const Lanes& lanes) {
    store(lanes, result, first, count);
  });
  return result;
}

ir::Expr Elements::without_reductions(ir::Expr expr) {
  return pool_.rewrite(expr, [this](ir::Expr node) -> ir::Expr {
    if (node->op == ir::ExprOp::Axis && node->extent()->is_constant(1)) return pool_.integer(0);
    if (node->op != ir::ExprOp::Reduce) return nullptr;
    const auto known = tables_.find(node);
    if (known != tables_.end()) return known->second;
    ir::Expr read = is_ranked(node->reduction) ? sorted_table(node) : table(node);
    tables_.emplace(node, read);
    return read;
  });
}

ir::Expr Elements::read_of(Tensor tensor, DType dtype, std::vector<ir::Expr> index) {
  tensors_.push_back(std::move(tensor));
  return pool_.read(static_cast<int64_t>(tensors_.size()) - 1, dtype, std::move(index));
}

// Nested sums are one sum over all their axes, as are nested products and extrema.
ir::Expr Elements::table(ir::Expr reduce) {
  std::vector<ir::Expr> bound = {reduce->bound_axis()};
  ir::Expr body = reduce->body();
  while (!is_positional(reduce) && body->op == ir::ExprOp::Reduce &&
         body->reduction == reduce->reduction && body->dtype == reduce->dtype) {
    bound.push_back(body->bound_axis());
    body = body->body();
  }
  body = without_reductions(body);
  Reducing reducing{reduce->reduction,      reduce->dtype, is_positional(reduce), body,
                    free_axes(body, bound), bound};
  if (const auto product = as_product(pool_, reducing)) {
    std::vector<ir::Expr> index = product->batch;
    index.insert(index.end(), product->rows.begin(), product->rows.end());
    index.insert(index.end(), product->columns.begin(), product->columns.end());
    return read_of(multiplied(*product, source()), reduce->dtype, std::move(index));
  }
  return read_of(reduced(reducing, source()), reduce->dtype, reducing.free);
}

// All ranks at once; the wanted rank is an index into them.
ir::Expr Elements::sorted_table(ir::Expr reduce) {
  ir::Expr body = without_reductions(reduce->body());
  const bool index = reduce->integer != 0;
  const std::vector<ir::Expr> bound = {reduce->bound_axis()};
  Reducing reducing{reduce->reduction, reduce->dtype, index, body, free_axes(body, bound), bound};
  std::vector<ir::Expr> at = reducing.free;
  at.push_back(without_reductions(reduce->args[2]));
  return read_of(sorted(reducing, source()), reduce->dtype, std::move(at));
}

}  // namespace redfuser::reference
