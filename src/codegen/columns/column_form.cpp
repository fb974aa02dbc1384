#include "codegen/columns/column_form.h"

#include <algorithm>
#include <optional>

#include "ir/polynomial.h"

namespace redfuser::codegen {
namespace {

// The expressions of a form that have axes.
std::vector<ir::Expr*> expressions(FlatStreaming& form) {
  std::vector<ir::Expr*> result;
  for (cascade::Accumulator& a : form.accumulators) result.push_back(&a.lift);
  for (ir::Expr& finish : form.finish) result.push_back(&finish);
  for (FlatStreaming::Output& output : form.outputs) result.push_back(&output.body);
  return result;
}

// One axis for two neighbours, where memory is addressed alike; false, with nothing changed, if it
// is not.
bool merge_rows(ir::ExprPool& pool, FlatStreaming& form, size_t outer) {
  std::vector<ir::Expr>& rows = form.cascade.rows;
  ir::Expr a = rows[outer], b = rows[outer + 1];
  ir::Expr merged = pool.axis("i", pool.mul(a->extent(), b->extent()));
  auto offset_of = [&](ir::Expr offset) -> ir::Expr {
    auto parts = strided(pool, offset, {a, b});
    if (!parts || parts->strides[0] != pool.mul(parts->strides[1], b->extent())) return nullptr;
    return pool.add(parts->base, pool.mul(merged, parts->strides[1]));
  };
  FlatStreaming result = form;
  for (ir::Expr* expr : expressions(result)) {
    *expr = pool.rewrite(*expr, [&](ir::Expr e) -> ir::Expr {
      if (e->op != ir::ExprOp::Read || !(e->depends_on(a) || e->depends_on(b))) return nullptr;
      ir::Expr offset = offset_of(e->args[0]);
      return offset ? pool.read(e->integer, e->dtype, {offset}) : nullptr;
    });
    if ((*expr)->depends_on(a) || (*expr)->depends_on(b)) return false;
  }
  for (FlatStreaming::Output& output : result.outputs) {
    output.offset = offset_of(output.offset);
    if (!output.offset) return false;
  }
  result.cascade.rows[outer] = merged;
  result.cascade.rows.erase(result.cascade.rows.begin() + static_cast<long>(outer) + 1);
  form = std::move(result);
  return true;
}

// Bytes per streamed element that are adjacent to those of the next position on an axis.
size_t adjacent_bytes(const StepBuilder& builder, const FlatStreaming& form, ir::Expr axis) {
  size_t bytes = 0;
  std::set<std::pair<int64_t, ir::Expr>> seen;
  auto note = [&](int64_t value, ir::Expr offset) {
    if (!offset->depends_on(form.cascade.stream) || !seen.insert({value, offset}).second) return;
    auto affine = affine_in(builder.pool(), offset, axis);
    if (affine && affine->stride->is_constant(1)) bytes += size_of(builder.dtype_of(value));
  };
  for (ir::Expr root : form.streamed()) {
    visit(root, [&](ir::Expr e) {
      if (e->op == ir::ExprOp::Read && e->integer >= 0) note(e->integer, e->args[0]);
    });
  }
  for (const FlatStreaming::Output& output : form.outputs) {
    if (output.maps_back) note(output.value, output.offset);
  }
  return bytes;
}

}  // namespace

std::variant<ColumnForm, std::string> column_form(StepBuilder& builder,
                                                  const FlatStreaming& given) {
  if (!folds(given)) return std::string("a reduction keeps more than a number per row");
  FlatStreaming form = given;
  std::vector<ir::Expr>& rows = form.cascade.rows;
  for (size_t i = rows.size(); i-- > 1;) merge_rows(builder.pool(), form, i - 1);
  ir::Expr across = nullptr;
  size_t best = 0;
  for (ir::Expr row : rows) {
    const size_t bytes = adjacent_bytes(builder, form, row);
    if (bytes > best && !row->extent()->is_constant(1)) {
      across = row;
      best = bytes;
    }
  }
  if (!across) return std::string("no rows are adjacent in memory");
  if (adjacent_bytes(builder, form, form.cascade.stream) >= best) {
    return std::string("the elements of a row are adjacent in memory");
  }
  ColumnForm result{std::move(form), {}, across};
  for (ir::Expr row : result.rows.cascade.rows) {
    if (row != across) result.outer.push_back(row);
  }
  return result;
}

std::optional<ColumnOffset> column_offset(ir::ExprPool& pool, const ColumnForm& form,
                                          ir::Expr offset) {
  auto across = affine_in(pool, offset, form.across);
  if (!across || !across->stride->is_constant(1)) return std::nullopt;
  ColumnOffset result{offset, nullptr, nullptr};
  auto along = affine_in(pool, offset, form.rows.cascade.stream);
  if (along && is_size(along->stride)) {
    result.base = along->base;
    result.stride = along->stride;
  }
  return result;
}

}  // namespace redfuser::codegen
