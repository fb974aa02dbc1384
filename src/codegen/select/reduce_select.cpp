#include "codegen/select/reduce_select.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "cascade/derive/derive.h"
#include "cascade/extract/extract.h"
#include "codegen/columns/column_form.h"
#include "codegen/contraction/divide_axis.h"
#include "codegen/functor/stream_digits.h"
#include "ir/polynomial.h"

namespace redfuser::codegen {
namespace {

// Elements that lie one behind the other, or one before the other (the last place of an extreme).
bool reads_consecutive(ir::ExprPool& pool, const FlatStreaming& form) {
  bool found = false;
  for (ir::Expr root : form.streamed()) {
    visit(root, [&](ir::Expr e) {
      if (e->op != ir::ExprOp::Read || e->integer < 0) return;
      const auto group = grouped_offset(pool, e->args[0], form.cascade.stream, 1);
      const auto affine = affine_in(pool, e->args[0], form.cascade.stream);
      found |= group && group->stride == 1;
      found |= affine && affine->stride->is_constant(-1);
    });
  }
  return found;
}

// Of two tensors read along the rows, each has one of these axes that the other lacks: every
// element is read for many rows.
bool contracts(const std::vector<ir::Expr>& roots, const std::vector<ir::Expr>& axes,
               ir::Expr stream) {
  std::set<ir::Expr> reads;
  for (ir::Expr root : roots) {
    visit(root, [&](ir::Expr e) {
      if (e->op != ir::ExprOp::Read || e->integer < 0) return;
      if (e->depends_on(stream)) reads.insert(e);
    });
  }
  const auto lacks = [&](ir::Expr a, ir::Expr b) {
    return std::any_of(axes.begin(), axes.end(),
                       [&](ir::Expr axis) { return b->depends_on(axis) && !a->depends_on(axis); });
  };
  return std::any_of(reads.begin(), reads.end(), [&](ir::Expr a) {
    return std::any_of(reads.begin(), reads.end(),
                       [&](ir::Expr b) { return lacks(a, b) && lacks(b, a); });
  });
}

// The same over the rows, or their digits.
bool contracts(ir::ExprPool& pool, const FlatStreaming& form) {
  const std::vector<ir::Expr>& rows = form.cascade.rows;
  ir::Expr stream = form.cascade.stream;
  const auto roots = form.streamed();
  if (contracts({roots.begin(), roots.end()}, rows, stream)) return true;
  return std::any_of(roots.begin(), roots.end(), [&](ir::Expr root) {
    const auto divided = divide_axis(pool, rows, {0, root, pool.integer(0)});
    return divided && contracts({divided->store.body}, divided->axes, stream);
  });
}

}  // namespace

std::variant<FlatStreaming, std::string> rows_of(StepBuilder& builder,
                                                 const fuse::ReduceStep& step) {
  ir::ExprPool& pool = builder.pool();
  const auto found = cascade::extract(pool, {{step.value, step.body, step.axes}});
  const auto* extraction = std::get_if<cascade::Extraction>(&found);
  if (!extraction || extraction->has_producer || extraction->has_columns) {
    return "the elements are reductions or the reduction has several axes";
  }
  auto derived = cascade::derive(pool, extraction->cascade);
  auto* derivation = std::get_if<cascade::Derivation>(&derived);
  if (!derivation) return "the reduction has no streaming form";
  const FlatStreaming form =
      flat_streaming(builder, fuse::CascadeStep{std::move(derivation->streaming)});
  if (!folds(form) || contracts(pool, form)) return "each element is read for many rows";
  if (std::holds_alternative<ColumnForm>(column_form(builder, form))) return form;
  if (!reads_consecutive(pool, form)) return "the elements of a row are apart in memory";
  return form;
}

}  // namespace redfuser::codegen
