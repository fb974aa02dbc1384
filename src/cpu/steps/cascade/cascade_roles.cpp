// The roles of a streaming form's axes: which rows make up tiles and which are fixed in a task, so
// that contractions become matrix products.
#include "cpu/steps/cascade/cascade_roles.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "cpu/tile/factors.h"
#include "cpu/tile/specialize.h"

namespace redfuser::cpu {

std::vector<ir::Expr*> SpecializedStreaming::expressions() {
  std::vector<ir::Expr*> result;
  for (cascade::Accumulator& a : form.accumulators) {
    result.push_back(&a.lift);
    if (a.transport) result.push_back(&a.transport);
  }
  for (cascade::Reference& reference : form.references) result.push_back(&reference.value);
  for (cascade::Stage& stage : form.cascade.stages) result.push_back(&stage.body);
  for (ir::Expr& finish : form.finish) result.push_back(&finish);
  for (cascade::CascadeOutput& output : form.cascade.outputs) {
    result.push_back(&output.body);
    for (ir::Expr& axis : output.axes) result.push_back(&axis);
  }
  return result;
}

namespace {

// Replaces every column axis that occurs in ⌊x/d⌋ or x mod d by its parts.
void split_columns(ir::ExprPool& pool, SpecializedStreaming& s) {
  std::vector<std::pair<ir::Expr, std::vector<ir::Expr>>> parts;
  auto split = [&](std::vector<ir::Expr>& columns) {
    std::vector<ir::Expr> result;
    for (ir::Expr axis : columns) {
      auto found = std::find_if(parts.begin(), parts.end(),
                                [&](auto& entry) { return entry.first == axis; });
      if (found == parts.end()) {
        std::vector<ir::Expr> pieces{axis};
        split_axes(pool, pieces, s.expressions());
        parts.push_back({axis, pieces});
        found = parts.end() - 1;
      }
      result.insert(result.end(), found->second.begin(), found->second.end());
    }
    columns = result;
  };
  for (auto& fold : s.form.accumulators) split(fold.columns);
  for (auto& result : s.form.cascade.stages) split(result.columns);
}

// A fold with columns is a matrix product if none of its factors depends on a column and on a tile
// row at once. Rows that occur beside columns can still become outer axes, unless `tile_rows` says
// that they were columns before.
bool is_product(const cascade::Accumulator& fold, const std::vector<ir::Expr>& stream,
                const std::vector<ir::Expr>& tile_rows) {
  if (fold.reduction != ir::Reduction::Sum || !is_float(fold.dtype)) return false;
  std::vector<ir::Expr> bound = fold.columns;
  bound.insert(bound.end(), stream.begin(), stream.end());
  bool any = false;
  for (ir::Expr factor : factors_of(fold.lift, bound).bound) {
    const bool columns = depends_on_any(factor, fold.columns);
    const bool leaf = factor->has_leaf;
    if (columns && (leaf || depends_on_any(factor, tile_rows))) return false;
    any |= columns;
  }
  return any;
}

bool all_products(const SpecializedStreaming& s, const std::vector<ir::Expr>& tile_rows) {
  for (const cascade::Reference& reference : s.form.references) {
    bool over_columns = false;
    visit(reference.value, [&](ir::Expr e) {
      if (e->op == ir::ExprOp::Leaf && e->leaf_kind == ir::LeafKind::State) {
        over_columns |= !s.form.accumulators[static_cast<size_t>(e->integer)].columns.empty();
      }
    });
    if (over_columns) return false;
  }
  return std::all_of(s.form.accumulators.begin(), s.form.accumulators.end(), [&](auto& fold) {
    return fold.columns.empty() || is_product(fold, s.stream, tile_rows);
  });
}

void move_to_rows(SpecializedStreaming& s, ir::Expr axis) {
  s.form.cascade.rows.push_back(axis);
  for (auto& fold : s.form.accumulators) std::erase(fold.columns, axis);
  for (auto& result : s.form.cascade.stages) std::erase(result.columns, axis);
}

// Columns that obstruct products become rows: one of them if that is enough (linear attention has
// two, one on each side of the product), else all.
std::vector<ir::Expr> settle_columns(SpecializedStreaming& s) {
  std::vector<ir::Expr> columns;
  for (auto& fold : s.form.accumulators) {
    for (ir::Expr axis : fold.columns) {
      if (std::find(columns.begin(), columns.end(), axis) == columns.end()) columns.push_back(axis);
    }
  }
  if (columns.empty() || all_products(s, {})) return {};
  for (ir::Expr axis : columns) {
    SpecializedStreaming trial = s;
    move_to_rows(trial, axis);
    if (all_products(trial, {axis})) {
      s = std::move(trial);
      return {axis};
    }
  }
  for (ir::Expr axis : columns) move_to_rows(s, axis);
  return columns;
}

// Row axes that the streamed side of a product depends on: a task keeps them fixed.
class FixedRows {
 public:
  explicit FixedRows(SpecializedStreaming& s) : s_(s) {}

  std::set<ir::Expr> find() {
    for (auto& fold : s_.form.accumulators) {
      scan(fold.lift);
      if (fold.columns.empty()) continue;
      s_.has_product = true;
      std::vector<ir::Expr> bound = fold.columns;
      bound.insert(bound.end(), s_.stream.begin(), s_.stream.end());
      for (ir::Expr factor : factors_of(fold.lift, bound).bound) {
        if (depends_on_any(factor, fold.columns)) fix(factor);
      }
    }
    for (auto& output : s_.form.cascade.outputs) {
      if (output.maps_back) scan(output.body);
    }
    return fixed_;
  }

 private:
  void scan(ir::Expr root) {
    visit(root, [&](ir::Expr e) {
      if (e->op != ir::ExprOp::Reduce || e->reduction != ir::Reduction::Sum || !is_float(e->dtype))
        return;
      if (!depends_on_any(e, s_.stream)) return;
      std::vector<ir::Expr> streamed;
      bool other = false;
      for (ir::Expr factor : factors_of(e->body(), {e->bound_axis()}).bound) {
        if (depends_on_any(factor, s_.stream)) {
          streamed.push_back(factor);
        } else {
          other = true;
        }
      }
      if (!other || streamed.empty()) return;
      s_.has_product = true;
      for (ir::Expr factor : streamed) fix(factor);
    });
  }
  void fix(ir::Expr factor) {
    for (ir::Expr axis : s_.form.cascade.rows) {
      if (factor->depends_on(axis)) fixed_.insert(axis);
    }
  }

  SpecializedStreaming& s_;
  std::set<ir::Expr> fixed_;
};

void place(SpecializedStreaming& s, GrowingExtents& extents) {
  extents.place({&s.form.cascade.rows, &s.stream});
  for (auto& fold : s.form.accumulators) extents.place({&fold.columns});
  for (auto& stage : s.form.cascade.stages) extents.place({&stage.columns});
  for (ir::Expr* expr : s.expressions()) *expr = extents.placed(*expr);
}

}  // namespace

SpecializedStreaming specialize(ir::ExprPool& pool, std::span<const int64_t> symbols,
                                const cascade::Streaming& streaming, const GrowingSizes* growing,
                                GrowingExtents* extents) {
  Specializer specializer(pool, symbols, growing);
  SpecializedStreaming s;
  cascade::Cascade& cascade = s.form.cascade;
  cascade.rows = specializer.copy_axes(streaming.cascade.rows);
  s.stream = specializer.copy_axes({&streaming.cascade.stream, 1});
  s.form.accumulators = streaming.accumulators;
  for (cascade::Accumulator& a : s.form.accumulators) {
    a.columns = specializer.copy_axes(a.columns);
    a.lift = specializer.copy(a.lift);
    if (a.transport) a.transport = specializer.copy(a.transport);
  }
  s.form.references = streaming.references;
  for (cascade::Reference& r : s.form.references) r.value = specializer.copy(r.value);
  cascade.stages = streaming.cascade.stages;
  for (size_t i = 0; i < cascade.stages.size(); ++i) {
    cascade.stages[i].columns = specializer.copy_axes(cascade.stages[i].columns);
    cascade.stages[i].body = specializer.copy(cascade.stages[i].body);
    s.form.finish.push_back(specializer.copy(streaming.finish[i]));
  }
  cascade.outputs = streaming.cascade.outputs;
  for (cascade::CascadeOutput& output : cascade.outputs) {
    for (ir::Expr& axis : output.axes) axis = specializer.copy(axis);
    output.body = specializer.copy(output.body);
  }
  if (extents != nullptr) place(s, *extents);
  s.length = extent_of(s.stream);
  split_axes(pool, cascade.rows, s.expressions());
  split_columns(pool, s);
  const std::vector<ir::Expr> from_columns = settle_columns(s);
  const std::set<ir::Expr> fixed = FixedRows(s).find();
  std::vector<ir::Expr> rows;
  for (ir::Expr axis : cascade.rows) {
    const bool moved =
        std::find(from_columns.begin(), from_columns.end(), axis) != from_columns.end();
    (fixed.count(axis) && !moved ? s.outer : rows).push_back(axis);
  }
  cascade.rows = rows;
  return s;
}

}  // namespace redfuser::cpu
