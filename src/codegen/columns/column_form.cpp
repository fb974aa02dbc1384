#include "codegen/columns/column_form.h"

#include <algorithm>
#include <optional>

#include "codegen/functor/stream_digits.h"
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

// Bytes per streamed element that are adjacent to those of the next position on an axis. Elements
// that all rows share do not count: a cache holds them.
size_t adjacent_bytes(const StepBuilder& builder, const FlatStreaming& form, ir::Expr axis) {
  size_t bytes = 0;
  std::set<std::pair<int64_t, ir::Expr>> seen;
  auto note = [&](int64_t value, ir::Expr offset) {
    if (!offset->depends_on(form.cascade.stream) || !seen.insert({value, offset}).second) return;
    const bool own = std::any_of(form.cascade.rows.begin(), form.cascade.rows.end(),
                                 [&](ir::Expr row) { return offset->depends_on(row); });
    if (!own) return;
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

constexpr int64_t kMostBeside = 32;

// The last digit of a streamed element's offset, a power of two up to kMostBeside that divides the
// length; 1 where there is none.
int64_t joined_digits(ir::ExprPool& pool, const FlatStreaming& form) {
  int64_t found = 1;
  for (ir::Expr root : form.streamed()) {
    visit(root, [&](ir::Expr e) {
      if (e->op != ir::ExprOp::Read || e->integer < 0) return;
      found = std::max(found, last_digit(e->args[0], form.cascade.stream));
    });
  }
  const bool divides = pool.floormod(form.length(), pool.integer(found))->is_constant(0);
  return found <= kMostBeside && (found & (found - 1)) == 0 && divides ? found : 1;
}

// The form with that digit c of j = C · s + c as its last row axis, streamed over s.
FlatStreaming with_digit_rows(ir::ExprPool& pool, const FlatStreaming& given, int64_t digits) {
  FlatStreaming form = given;
  ir::Expr count = pool.integer(digits), digit = pool.axis("c", count);
  ir::Expr stream = pool.axis("s", pool.floordiv(given.length(), count));
  ir::Expr whole = pool.add(pool.mul(stream, count), digit);
  for (ir::Expr* expr : expressions(form)) {
    *expr = pool.substitute(*expr, {{given.cascade.stream, whole}});
  }
  for (FlatStreaming::Output& output : form.outputs) {
    output.offset = pool.substitute(output.offset, {{given.cascade.stream, whole}});
  }
  form.cascade.stream = stream;
  form.cascade.rows.push_back(digit);
  return form;
}

// Whether neighbours across read every streamed element at adjacent places, or at the same place.
bool reads_across(ir::ExprPool& pool, const ColumnForm& form) {
  bool across = true;
  const auto check = [&](ir::Expr offset) {
    if (!offset->depends_on(form.rows.cascade.stream)) return;
    across &= column_offset(pool, form, offset).has_value();
  };
  for (ir::Expr root : form.rows.streamed()) {
    visit(root, [&](ir::Expr e) {
      if (e->op == ir::ExprOp::Read && e->integer >= 0) check(e->args[0]);
    });
  }
  for (const FlatStreaming::Output& output : form.rows.outputs) {
    if (output.maps_back) check(output.offset);
  }
  return across;
}

std::variant<ColumnForm, std::string> plain_form(StepBuilder& builder, const FlatStreaming& given) {
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
  ColumnForm result{std::move(form), {}, across};
  if (adjacent_bytes(builder, result.rows, result.rows.cascade.stream) >= best) {
    if (!reads_across(builder.pool(), result)) {
      return std::string("the elements of a row are adjacent in memory");
    }
    result.mixed = true;
  }
  for (ir::Expr row : result.rows.cascade.rows) {
    if (row != across) result.outer.push_back(row);
  }
  return result;
}

// Rows whose elements are adjacent in short runs, between those of their neighbours.
std::optional<ColumnForm> beside_form(StepBuilder& builder, const FlatStreaming& given) {
  const int64_t digits = joined_digits(builder.pool(), given);
  const bool places = std::any_of(given.accumulators.begin(), given.accumulators.end(),
                                  [](const auto& a) { return is_arg(a.reduction); });
  if (digits == 1 || places) return std::nullopt;
  const FlatStreaming split = with_digit_rows(builder.pool(), given, digits);
  ir::Expr digit = split.cascade.rows.back();
  auto found = plain_form(builder, split);
  auto* form = std::get_if<ColumnForm>(&found);
  if (form == nullptr || form->across->extent() == digit->extent()) return std::nullopt;
  const std::vector<ir::Expr>& rows = form->rows.cascade.rows;
  if (std::find(rows.begin(), rows.end(), digit) != rows.end()) return std::nullopt;
  form->beside = static_cast<int>(digits);
  return std::move(*form);
}

}  // namespace

std::variant<ColumnForm, std::string> column_form(StepBuilder& builder,
                                                  const FlatStreaming& given) {
  if (!folds(given)) return std::string("a reduction keeps more than a number per row");
  auto form = plain_form(builder, given);
  if (std::holds_alternative<ColumnForm>(form)) return form;
  if (auto beside = beside_form(builder, given)) return std::move(*beside);
  return form;
}

std::optional<ColumnOffset> column_offset(ir::ExprPool& pool, const ColumnForm& form,
                                          ir::Expr offset) {
  auto across = affine_in(pool, offset, form.across);
  if (!across) return std::nullopt;
  const bool shared = across->stride->is_constant(0);
  if (!shared && !across->stride->is_constant(1)) return std::nullopt;
  ColumnOffset result{offset, nullptr, nullptr, shared};
  auto along = affine_in(pool, offset, form.rows.cascade.stream);
  if (along && is_size(along->stride)) {
    result.base = along->base;
    result.stride = along->stride;
  }
  return result;
}

}  // namespace redfuser::codegen
