#include "codegen/elementwise/map_shape.h"

#include <algorithm>
#include <functional>
#include <set>

#include "cascade/visibility/visible_terms.h"
#include "ir/polynomial.h"

namespace redfuser::codegen {
namespace {

void merge_axes(ir::ExprPool& pool, MapShape& shape) {
  std::erase_if(shape.axes, [](ir::Expr axis) { return axis->op != ir::ExprOp::Axis; });
  for (size_t i = shape.axes.size(); i-- > 1;) merge_pair(pool, shape.axes, shape.stores, i - 1);
}

// The position at which selections change sides along the innermost axis: c of `axis < c`, if it is
// the only one.
int64_t boundary(const MapShape& shape) {
  ir::Expr axis = shape.axes.back();
  std::set<int64_t> found;
  for (const Store& store : shape.stores) {
    visit(store.body, [&](ir::Expr e) {
      if (e->op == ir::ExprOp::Less && e->args[0] == axis && e->args[1]->is_constant()) {
        found.insert(e->args[1]->integer);
      }
    });
  }
  return found.size() == 1 ? *found.begin() : 0;
}

// Splits f(i), i < 2 c, into f(r) and f(c + r), r < c, if selections change sides at c: both then
// use the plain index r, and common reads are loaded once.
void split_sides(ir::ExprPool& pool, MapShape& shape) {
  constexpr int64_t kUnit = 8;
  if (shape.axes.empty() || !shape.axes.back()->extent()->is_constant()) return;
  ir::Expr axis = shape.axes.back();
  const int64_t half = boundary(shape);
  if (half <= 0 || half % kUnit != 0 || axis->extent()->integer != 2 * half) return;
  ir::Expr low = pool.axis("r", pool.integer(half)), high = pool.add(low, pool.integer(half));
  std::vector<Store> stores;
  for (const Store& store : shape.stores) {
    for (ir::Expr index : {low, high}) {
      stores.push_back({store.value, pool.substitute(store.body, {{axis, index}}),
                        pool.substitute(store.offset, {{axis, index}})});
    }
  }
  shape.stores = std::move(stores);
  shape.axes.back() = low;
}

// Whether every read in it is along the axis: consecutive points read consecutive elements.
bool reads_along(ir::ExprPool& pool, ir::Expr e, ir::Expr axis) {
  bool along = true;
  visit(e, [&](ir::Expr read) {
    if (read->op != ir::ExprOp::Read) return;
    const auto affine = affine_in(pool, read->args[0], axis);
    along &= affine && affine->stride->is_constant(1) && !affine->base->depends_on(axis);
  });
  return along;
}

// The terms of a reduction, times those of the largest one inside of it; more than `most` where it
// has more or cannot be written out.
int64_t terms_of(ir::Expr reduce, int64_t most) {
  const bool known = reduce->extent()->is_constant() && reduce->extent()->integer > 0;
  if (!known || picks_element(reduce->reduction)) return most + 1;
  int64_t inside = 1;
  visit(reduce->body(), [&](ir::Expr e) {
    if (e->op == ir::ExprOp::Reduce) inside = std::max(inside, terms_of(e, most));
  });
  return reduce->extent()->integer <= most / inside ? reduce->extent()->integer * inside : most + 1;
}

// Reductions of few elements, as windows of pools are where channels come last, are written out:
// r = ⊕_k f(k) becomes f(0) ⊕ f(1) ⊕ ..., so that consecutive points are loaded together.
void write_out_reductions(ir::ExprPool& pool, MapShape& shape) {
  constexpr int64_t kMost = 32;
  if (shape.axes.empty()) return;
  bool taken = true;
  for (const Store& store : shape.stores) {
    taken &= reads_along(pool, store.body, shape.axes.back());
    visit(store.body, [&](ir::Expr e) {
      if (e->op != ir::ExprOp::Reduce) return;
      taken &= e->reduction == ir::Reduction::Sum || e->reduction == ir::Reduction::Max;
      taken &= terms_of(e, kMost) <= kMost;
    });
  }
  if (!taken) return;
  const std::function<ir::Expr(ir::Expr)> written = [&](ir::Expr root) {
    return pool.rewrite(root, [&](ir::Expr e) -> ir::Expr {
      if (e->op != ir::ExprOp::Reduce) return nullptr;
      ir::Expr body = written(e->body()), result = nullptr;
      for (int64_t k = 0; k < e->extent()->integer; ++k) {
        ir::Expr term = pool.substitute(body, {{e->bound_axis(), pool.integer(k)}});
        if (!result) {
          result = term;
        } else if (e->reduction == ir::Reduction::Sum) {
          result = pool.add(result, term);
        } else {
          result = pool.make(ir::ExprOp::Max, {result, term});
        }
      }
      return result;
    });
  };
  for (Store& store : shape.stores) store.body = written(store.body);
}

}  // namespace

bool has_reduce(const std::vector<Store>& stores) {
  bool found = false;
  for (const Store& store : stores) {
    visit(store.body, [&](ir::Expr e) { found |= e->op == ir::ExprOp::Reduce; });
  }
  return found;
}

std::vector<ir::Expr> reads_of(const std::vector<Store>& stores) {
  std::vector<ir::Expr> reads;
  std::set<ir::Expr> seen;
  for (const Store& store : stores) {
    visit(store.body, [&](ir::Expr e) {
      if (e->op == ir::ExprOp::Read && e->integer >= 0 && seen.insert(e).second) reads.push_back(e);
    });
  }
  return reads;
}

bool wants_warp(ir::ExprPool& pool, const std::vector<Store>& stores) {
  bool found = false;
  std::set<ir::Expr> seen;
  std::function<void(ir::Expr)> go = [&](ir::Expr e) {
    if (!seen.insert(e).second) return;
    if (e->op != ir::ExprOp::Reduce) {
      for (ir::Expr arg : e->args) go(arg);
      return;
    }
    if (picks_element(e->reduction)) return;
    if (e->extent()->is_constant() && e->extent()->integer < 64) return;
    visit(e->body(), [&](ir::Expr inner) {
      if (inner->op != ir::ExprOp::Read) return;
      auto affine = affine_in(pool, inner->args[0], e->bound_axis());
      found |= affine && affine->stride->is_constant(1);
    });
  };
  for (const Store& store : stores) go(store.body);
  return found;
}

bool merge_pair(ir::ExprPool& pool, std::vector<ir::Expr>& axes, std::vector<Store>& all,
                size_t outer) {
  ir::Expr a = axes[outer], b = axes[outer + 1];
  ir::Expr merged = pool.axis("e", pool.mul(a->extent(), b->extent()));
  auto offset_of = [&](ir::Expr offset) -> ir::Expr {
    auto parts = strided(pool, offset, {a, b});
    if (!parts || parts->strides[0] != pool.mul(parts->strides[1], b->extent())) return nullptr;
    return pool.add(parts->base, pool.mul(merged, parts->strides[1]));
  };
  std::vector<Store> stores = all;
  for (Store& store : stores) {
    store.offset = offset_of(store.offset);
    if (!store.offset) return false;
    store.body = pool.rewrite(store.body, [&](ir::Expr e) -> ir::Expr {
      if (e->op != ir::ExprOp::Read || !(e->depends_on(a) || e->depends_on(b))) return nullptr;
      ir::Expr offset = offset_of(e->args[0]);
      return offset ? pool.read(e->integer, e->dtype, {offset}) : nullptr;
    });
    if (store.body->depends_on(a) || store.body->depends_on(b)) return false;
  }
  all = std::move(stores);
  axes[outer] = merged;
  axes.erase(axes.begin() + static_cast<long>(outer) + 1);
  return true;
}

MapShape simplified(ir::ExprPool& pool, MapShape shape) {
  for (Store& store : shape.stores) store.body = cascade::visible_terms(pool, store.body);
  merge_axes(pool, shape);
  if (has_reduce(shape.stores)) write_out_reductions(pool, shape);
  if (!has_reduce(shape.stores)) split_sides(pool, shape);
  return shape;
}

}  // namespace redfuser::codegen
