#include "cascade/visibility/index_bounds.h"

#include <algorithm>

#include "ir/ranges.h"

namespace redfuser::cascade {

bool IndexBounds::varies(ir::Expr e) const {
  return std::any_of(corners_.begin(), corners_.end(),
                     [&](const TileCorner& c) { return e->depends_on(c.axis); });
}

std::optional<Bounds> IndexBounds::of(ir::Expr e) const {
  if (!varies(e)) return Bounds{e, e};
  ir::Expr low = pool_.integer(0), high = low;
  for (const auto& [monomial, coefficient] : to_polynomial(e)) {
    auto part = of_monomial(monomial);
    if (!part) return std::nullopt;
    if (coefficient < 0) std::swap(part->low, part->high);
    ir::Expr factor = pool_.integer(coefficient);
    low = pool_.add(low, pool_.mul(factor, part->low));
    high = pool_.add(high, pool_.mul(factor, part->high));
  }
  return Bounds{low, high};
}

std::optional<Bounds> IndexBounds::of_monomial(const ir::Monomial& monomial) const {
  Bounds result{pool_.integer(1), pool_.integer(1)};
  for (ir::Expr atom : monomial) {
    auto part = of_atom(atom);
    if (!part) return std::nullopt;
    const bool signs = proved_nonnegative(result.low, ir::kWhereElementsExist) &&
                       proved_nonnegative(part->low, ir::kWhereElementsExist);
    if (signs) {
      result = {pool_.mul(result.low, part->low), pool_.mul(result.high, part->high)};
    } else if (part->low == part->high || result.low == result.high) {
      ir::Expr a = pool_.mul(result.low, part->low), b = pool_.mul(result.high, part->high);
      result =
          a == b ? Bounds{a, a}
                 : Bounds{pool_.make(ir::ExprOp::Min, {a, b}), pool_.make(ir::ExprOp::Max, {a, b})};
    } else {
      return std::nullopt;
    }
  }
  return result;
}

std::optional<Bounds> IndexBounds::of_atom(ir::Expr atom) const {
  if (!varies(atom)) return Bounds{atom, atom};
  for (const TileCorner& c : corners_) {
    if (atom == c.axis) return Bounds{c.first, c.last};
  }
  switch (atom->op) {
    case ir::ExprOp::FloorDiv:
    case ir::ExprOp::FloorMod:
      return of_quotient(atom);
    case ir::ExprOp::Min:
    case ir::ExprOp::Max: {
      auto a = of(atom->args[0]), b = of(atom->args[1]);
      if (!a || !b) return std::nullopt;
      return Bounds{pool_.make(atom->op, {a->low, b->low}),
                    pool_.make(atom->op, {a->high, b->high})};
    }
    case ir::ExprOp::Select: {
      auto a = of(atom->args[1]), b = of(atom->args[2]);
      if (!a || !b) return std::nullopt;
      return Bounds{pool_.make(ir::ExprOp::Min, {a->low, b->low}),
                    pool_.make(ir::ExprOp::Max, {a->high, b->high})};
    }
    default:
      return std::nullopt;
  }
}

std::optional<Bounds> IndexBounds::of_quotient(ir::Expr atom) const {
  ir::Expr divisor = atom->args[1];
  if (varies(divisor) || !proved_less(pool_, pool_.integer(0), divisor, ir::kWhereElementsExist))
    return std::nullopt;
  if (atom->op == ir::ExprOp::FloorMod) {
    return Bounds{pool_.integer(0), pool_.sub(divisor, pool_.integer(1))};
  }
  auto inner = of(atom->args[0]);
  if (!inner) return std::nullopt;
  return Bounds{pool_.floordiv(inner->low, divisor), pool_.floordiv(inner->high, divisor)};
}

}  // namespace redfuser::cascade
