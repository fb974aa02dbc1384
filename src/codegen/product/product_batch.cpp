#include "codegen/product/product_batch.h"

#include <algorithm>

#include "codegen/matrix/matrix_layout.h"
#include "ir/polynomial.h"

namespace redfuser::codegen {
namespace {

constexpr int64_t kMin = 64;  // rows and columns of each product of a batch

class Fit {
 public:
  Fit(StepBuilder& builder, ir::Expr offset)
      : builder_(builder), pool_(builder.pool()), offset_(offset) {}

  bool operator()(const fuse::ProductStep& step) {
    if (!fits(step, flat(step.a), step.m, {step.k})) return false;
    for (ir::Expr b : step.b) {
      if (!fits(step, flat(b), {step.k}, step.n)) return false;
    }
    return fits(step, offset_, step.m, step.n);
  }

 private:
  ir::Expr flat(ir::Expr operand) {
    while (operand->op == ir::ExprOp::Cast) operand = operand->args[0];
    return builder_.flat.flat(operand)->args[0];
  }

  bool fits(const fuse::ProductStep& step, ir::Expr offset, const std::vector<ir::Expr>& rows,
            const std::vector<ir::Expr>& columns) {
    auto layout = matrix_layout(pool_, offset, step.batch, rows, columns);
    return layout && library_takes(pool_, *layout, product_of(pool_, extents_of(pool_, rows)),
                                   product_of(pool_, extents_of(pool_, columns)));
  }

  StepBuilder& builder_;
  ir::ExprPool& pool_;
  ir::Expr offset_;
};

bool is_small(ir::ExprPool& pool, const std::vector<ir::Expr>& axes) {
  ir::Expr count = product_of(pool, extents_of(pool, axes));
  return count->is_constant() && count->integer < kMin;
}

}  // namespace

fuse::ProductStep with_fitting_batch(StepBuilder& builder, const fuse::ProductStep& step,
                                     ir::Expr offset) {
  Fit fits(builder, offset);
  if ((step.m.size() < 2 && step.n.size() < 2) || fits(step)) return step;
  for (auto side : {&fuse::ProductStep::m, &fuse::ProductStep::n}) {
    if ((step.*side).size() < 2) continue;
    fuse::ProductStep moved = step;
    moved.batch.push_back((moved.*side).front());
    (moved.*side).erase((moved.*side).begin());
    if (!is_small(builder.pool(), moved.*side) && fits(moved)) return moved;
  }
  return step;
}

fuse::ProductStep with_adjacent_columns(ir::ExprPool& pool, const fuse::ProductStep& step,
                                        ir::Expr offset) {
  if (step.b.size() != 1 || step.of_integers() || step.m.empty() || step.n.empty()) return step;
  const auto is_adjacent = [&](ir::Expr axis) {
    const auto affine = affine_in(pool, offset, axis);
    return affine && affine->stride->is_constant(1);
  };
  if (is_adjacent(step.n.back()) || !is_adjacent(step.m.back())) return step;
  fuse::ProductStep turned = step;
  std::swap(turned.m, turned.n);
  std::swap(turned.a, turned.b[0]);
  return turned;
}

bool have_adjacent_columns(ir::ExprPool& pool, const std::vector<ProductCall>& calls) {
  const ProductCall& first = calls[0];
  ir::Expr offset = first.b_offset, step = pool.mul(first.n, first.b_column);
  return std::all_of(calls.begin(), calls.end(), [&](const ProductCall& call) {
    const bool next = call.b.value == first.b.value && call.b.scratch == first.b.scratch &&
                      call.b_offset == offset && call.b_batch == first.b_batch &&
                      call.b_row == first.b_row && call.b_column == first.b_column;
    offset = pool.add(offset, step);
    return next;
  });
}

}  // namespace redfuser::codegen
