#include "cpu/steps/column_choice.h"

#include <algorithm>
#include <functional>
#include <unordered_set>

#include "cpu/tile/product_layout.h"
#include "cpu/tile/specialize.h"

namespace redfuser::cpu {
namespace {

constexpr int64_t kLongRow = 1024;  // columns beyond this gain nothing
constexpr int64_t kShortRow = 8;    // columns below this are joined even where reads then gather
constexpr int64_t kNarrowRow = 64;  // columns below this may be

bool depends_on_any(ir::Expr e, std::span<const ir::Expr> axes) {
  return std::any_of(axes.begin(), axes.end(), [&](ir::Expr axis) { return e->depends_on(axis); });
}

// Some operation, not a sum of axes, is `wanted`.
template <typename Wanted>
bool any_operation(std::span<const ir::Expr> bodies, const Wanted& wanted) {
  bool found = false;
  for (ir::Expr body : bodies) {
    visit(body, [&](ir::Expr e) {
      const bool operation = !e->args.empty() && e->op != ir::ExprOp::Read;
      found = found || (operation && wanted(e) && !is_affine(e));
    });
  }
  return found;
}

// Whether something is the same for all values of the innermost row axis, of those that vary over
// other rows and columns.
bool repeats(const AxisSplit& split, std::span<const ir::Expr> bodies) {
  if (split.rows.size() < 2) return false;
  const std::span<const ir::Expr> others = std::span(split.rows).first(split.rows.size() - 1);
  return any_operation(bodies, [&](ir::Expr e) {
    return !e->depends_on(split.rows.back()) && depends_on_any(e, others) &&
           depends_on_any(e, split.columns);
  });
}

// Whether rows are short, or elements lie at positions that vary over columns and the innermost row
// axis together: they do not lie side by side in either case.
bool gains_by_joining(const AxisSplit& split, std::span<const ir::Expr> bodies) {
  if (split.rows.empty()) return false;
  return extent_of(split.columns) < kNarrowRow || any_operation(bodies, [&](ir::Expr e) {
           return e->dtype == DType::Int64 && e->depends_on(split.rows.back()) &&
                  depends_on_any(e, split.columns);
         });
}

}  // namespace

bool is_affine(ir::Expr position) {
  bool affine = true;
  visit(position, [&](ir::Expr e) {
    affine = affine && (e->op == ir::ExprOp::Add || e->op == ir::ExprOp::Mul ||
                        e->op == ir::ExprOp::Axis || e->is_constant());
  });
  return affine;
}

AxisStrides strides_of(ir::Expr offset, const std::vector<ir::Expr>& axes) {
  AxisStrides result{std::vector<int64_t>(axes.size()), std::vector<bool>(axes.size(), true)};
  for (auto& [monomial, coefficient] : to_polynomial(offset)) {
    for (size_t i = 0; i < axes.size(); ++i) {
      if (monomial.size() == 1 && monomial[0] == axes[i]) {
        result.strides[i] = coefficient;
      } else if (std::any_of(monomial.begin(), monomial.end(),
                             [&](ir::Expr atom) { return atom->depends_on(axes[i]); })) {
        result.known[i] = false;
      }
    }
  }
  return result;
}

AxisSplit choose_columns(ir::ExprPool& pool, const std::vector<ir::Expr>& axes,
                         const MapElements& elements, const TileBuilder::DimsOf& dims,
                         SplitForm form) {
  std::vector<AxisStrides> reads, writes;
  std::unordered_set<ir::Expr> bare;  // axes whose value is used other than to find elements
  std::unordered_set<ir::Expr> seen;
  std::function<void(ir::Expr)> scan = [&](ir::Expr expr) {
    if (!seen.insert(expr).second) return;
    if (expr->op == ir::ExprOp::Axis) {
      bare.insert(expr);
    } else if (expr->op == ir::ExprOp::Read && expr->integer >= 0) {
      reads.push_back(strides_of(flat_offset(pool, expr->args, dims(expr->integer)), axes));
      // Reads within an index are reads of their own.
      for (ir::Expr index : expr->args) {
        if (index->has_read) {
          visit(index, [&](ir::Expr inner) {
            if (inner->op == ir::ExprOp::Read) scan(inner);
          });
        }
      }
    } else {
      for (ir::Expr arg : expr->args) scan(arg);
    }
  };
  for (ir::Expr body : elements.bodies) scan(body);
  for (ir::Expr write : elements.writes) writes.push_back(strides_of(write, axes));
  AxisSplit split;
  if (axes.empty()) return split;
  size_t first = axes.size() - 1;
  int64_t extent = extent_of(axes[first]);
  while (first > 0 && extent < kLongRow) {
    const size_t next = first - 1;
    bool joins = !bare.count(axes[next]) && !bare.count(axes[first]);
    for (const auto* accesses : {&reads, &writes}) {
      for (const AxisStrides& access : *accesses) {
        joins &= access.known[next] && access.known.back() &&
                 access.strides[next] == access.strides.back() * extent;
      }
    }
    if (!joins && extent >= kShortRow) break;
    first = next;
    extent *= extent_of(axes[next]);
  }
  first -= std::min(first, static_cast<size_t>(form.joined));
  const size_t outer = form.outer && first > 1 ? first - 1 : 0;
  split.outer.assign(axes.begin(), axes.begin() + static_cast<long>(outer));
  split.rows.assign(axes.begin() + static_cast<long>(outer),
                    axes.begin() + static_cast<long>(first));
  split.columns.assign(axes.begin() + static_cast<long>(first), axes.end());
  return split;
}

std::vector<SplitForm> other_splits(ir::ExprPool& pool, const std::vector<ir::Expr>& axes,
                                    const MapElements& elements, const TileBuilder::DimsOf& dims) {
  const std::span<const ir::Expr> bodies = elements.bodies;
  std::vector<SplitForm> forms;
  const auto add_outer = [&](const AxisSplit& split, int joined) {
    if (repeats(split, bodies)) forms.push_back({joined, true});
  };
  AxisSplit split = choose_columns(pool, axes, elements, dims);
  add_outer(split, 0);
  int joined = 0;
  while (joined < kMostJoined && gains_by_joining(split, bodies)) {
    split = choose_columns(pool, axes, elements, dims, {++joined, false});
  }
  if (joined == 0) return forms;
  forms.push_back({joined, false});
  add_outer(split, joined);
  return forms;
}

}  // namespace redfuser::cpu
