#include "codegen/contraction/contraction_form.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>

#include "codegen/contraction/distribute.h"
#include "codegen/contraction/divide_axis.h"
#include "ir/polynomial.h"

namespace redfuser::codegen {
namespace {

using Axes = std::vector<ir::Expr>;

constexpr size_t kMostParts = 4;  // of each side

bool depends_on_any(ir::Expr e, const Axes& axes) {
  return std::any_of(axes.begin(), axes.end(), [&](ir::Expr axis) { return e->depends_on(axis); });
}

// The parts of a term of which each is free of the rows or of the columns; nullopt where one is of
// both, or where there are too many.
struct Parts {
  Axes a, b;
};

class Division {
 public:
  Division(Axes rows, Axes columns) : rows_(std::move(rows)), columns_(std::move(columns)) {}

  std::optional<Parts> of(ir::Expr term) {
    go(term);
    const bool few = parts_.a.size() <= kMostParts && parts_.b.size() <= kMostParts;
    if (!holds_ || !few || parts_.a.empty() || parts_.b.empty()) return std::nullopt;
    return parts_;
  }

 private:
  void go(ir::Expr e) {
    if (!holds_ || !seen_.insert(e).second) return;
    if (e->is_constant() || is_size(e)) return;
    if (!depends_on_any(e, columns_)) return take(parts_.a, e);
    if (!depends_on_any(e, rows_)) return take(parts_.b, e);
    holds_ = !e->args.empty() && e->op != ir::ExprOp::Read && e->op != ir::ExprOp::Reduce;
    for (ir::Expr arg : e->args) go(arg);
  }

  void take(Axes& side, ir::Expr part) {
    side.push_back(part);
    visit(part, [&](ir::Expr e) { holds_ &= e->op != ir::ExprOp::Reduce; });
  }

  Axes rows_, columns_;
  Parts parts_;
  std::set<ir::Expr> seen_;
  bool holds_ = true;
};

// The only outermost reduction in the body; null where there is another number of them.
ir::Expr only_reduction(ir::Expr body) {
  std::set<ir::Expr> found, seen;
  const std::function<void(ir::Expr)> go = [&](ir::Expr e) {
    if (!seen.insert(e).second) return;
    if (e->op == ir::ExprOp::Reduce) {
      found.insert(e);
      return;
    }
    for (ir::Expr arg : e->args) go(arg);
  };
  go(body);
  return found.size() == 1 ? *found.begin() : nullptr;
}

// The order of the axes, those of `axes` in it.
Axes in_order(const Axes& axes, const Axes& of) {
  Axes result;
  for (ir::Expr axis : of) {
    if (std::find(axes.begin(), axes.end(), axis) != axes.end()) result.push_back(axis);
  }
  return result;
}

// The ways to divide the axes: every pair of them as a row and a column, to which others are added
// that leave the term divided.
class Finder {
 public:
  Finder(Axes axes, ir::Expr term) : axes_(std::move(axes)), term_(term) {}

  struct Found {
    Axes batch, rows, columns;
    Parts parts;
  };

  std::vector<Found> run() {
    for (ir::Expr row : axes_) {
      for (ir::Expr column : axes_) {
        if (row == column || !Division({row}, {column}).of(term_)) continue;
        for (const bool columns_first : {true, false}) extend(row, column, columns_first);
      }
    }
    return std::move(found_);
  }

 private:
  void extend(ir::Expr row, ir::Expr column, bool columns_first) {
    Axes m = {row}, n = {column}, others;
    const auto takes = [&](Axes& side, ir::Expr axis) {
      side.push_back(axis);
      if (Division(m, n).of(term_)) return true;
      side.pop_back();
      return false;
    };
    for (size_t i = axes_.size(); i-- > 0;) {  // the innermost first
      ir::Expr axis = axes_[i];
      if (axis == row || axis == column) continue;
      Axes &first = columns_first ? n : m, &second = columns_first ? m : n;
      if (!takes(first, axis) && !takes(second, axis)) others.push_back(axis);
    }
    Found found{in_order(others, axes_), in_order(m, axes_), in_order(n, axes_),
                *Division(m, n).of(term_)};
    const bool known = std::any_of(found_.begin(), found_.end(), [&](const Found& each) {
      return each.rows == found.rows && each.columns == found.columns;
    });
    if (!known) found_.push_back(std::move(found));
  }

  Axes axes_;
  ir::Expr term_;
  std::vector<Found> found_;
};

using Forms = std::variant<std::vector<ContractionForm>, std::string>;

// Over these axes alone.
Forms forms_over(ir::ExprPool& pool, const Axes& axes, const Store& store) {
  ContractionForm form;
  form.store = store;
  form.reduce = only_reduction(store.body);
  if (form.reduce == nullptr) return "its results have not one reduction each";
  if (picks_element(form.reduce->reduction)) return "it looks for an element";
  form.term = form.reduce;
  while (form.term->op == ir::ExprOp::Reduce && form.term->reduction == form.reduce->reduction &&
         form.term->dtype == form.reduce->dtype) {
    if (!is_size(form.term->extent())) return "the number of terms differs between results";
    form.depth.push_back(form.term->bound_axis());
    form.term = form.term->body();
  }
  form.term = distributed(pool, form.term);
  Axes single, all;
  for (ir::Expr axis : axes) {
    if (axis->op != ir::ExprOp::Axis) continue;
    (axis->extent()->is_constant(1) ? single : all).push_back(axis);
  }
  std::vector<ContractionForm> forms;
  for (Finder::Found& found : Finder(all, form.term).run()) {
    form.batch = single;
    form.batch.insert(form.batch.end(), found.batch.begin(), found.batch.end());
    form.rows = std::move(found.rows), form.columns = std::move(found.columns);
    form.a = std::move(found.parts.a), form.b = std::move(found.parts.b);
    forms.push_back(form);
  }
  if (forms.empty()) return "its terms join no elements of rows and columns";
  return forms;
}

}  // namespace

bool ContractionForm::lies_along(ir::ExprPool& pool, const Axes& parts, ir::Expr axis) {
  bool along = false;
  for (ir::Expr part : parts) {
    visit(part, [&](ir::Expr e) {
      if (e->op != ir::ExprOp::Read || e->args.size() != 1) return;
      const auto affine = affine_in(pool, e->args[0], axis);
      along |= affine && affine->stride->is_constant(1) && !affine->base->depends_on(axis);
    });
  }
  return along;
}

std::variant<std::vector<ContractionForm>, std::string> contraction_forms(ir::ExprPool& pool,
                                                                          const Axes& axes,
                                                                          const Store& store) {
  constexpr int kMostDivisions = 3;
  Forms forms = forms_over(pool, axes, store);
  auto divided = divide_axis(pool, axes, store);
  for (int i = 0; i < kMostDivisions && divided; ++i) {
    const Forms more = forms_over(pool, divided->axes, divided->store);
    if (const auto* found = std::get_if<std::vector<ContractionForm>>(&more)) {
      if (std::holds_alternative<std::string>(forms)) forms = std::vector<ContractionForm>();
      auto& all = std::get<std::vector<ContractionForm>>(forms);
      all.insert(all.end(), found->begin(), found->end());
    }
    divided = divide_axis(pool, divided->axes, divided->store);
  }
  return forms;
}

}  // namespace redfuser::codegen
