#include "cascade/visibility/index_bounds.h"

#include <algorithm>

#include "ir/ranges.h"

namespace redfuser::cascade {

namespace {

// The rules of ir/interval.h in expressions; null is unknown.
class Operands {
 public:
  Operands(ir::ExprPool& pool, const IndexBounds& bounds, ir::Expr atom) : pool_(pool) {
    if (!has_interval_rule(atom->op)) return;
    const bool divides = atom->op == ir::ExprOp::FloorDiv || atom->op == ir::ExprOp::FloorMod;
    if (divides) {  // divisors that are the same throughout the tile
      divisor_ = atom->args[1];
      positive_ = !bounds.varies(divisor_) &&
                  proved_less(pool, pool.integer(0), divisor_, ir::kWhereElementsExist);
      if (!positive_) return;
    }
    const bool later = atom->op == ir::ExprOp::Select || atom->op == ir::ExprOp::FloorMod;
    of_.resize(atom->args.size());
    for (size_t i = later ? 1 : 0; i < of_.size(); ++i) of_[i] = bounds.of(atom->args[i]);
  }

  ir::Expr low(size_t i) const { return of_[i] ? of_[i]->low : nullptr; }
  ir::Expr high(size_t i) const { return of_[i] ? of_[i]->high : nullptr; }
  ir::Expr least(ir::Expr x, ir::Expr y) const { return both(ir::ExprOp::Min, x, y); }
  ir::Expr greatest(ir::Expr x, ir::Expr y) const { return both(ir::ExprOp::Max, x, y); }
  ir::Expr zero() const { return pool_.integer(0); }
  static ir::Expr unknown_low() { return nullptr; }
  static ir::Expr unknown_high() { return nullptr; }
  bool positive(size_t) const { return positive_; }
  ir::Expr low_quotient() const { return low(0) ? pool_.floordiv(low(0), divisor_) : nullptr; }
  ir::Expr high_quotient() const { return high(0) ? pool_.floordiv(high(0), divisor_) : nullptr; }
  ir::Expr remainder_below(ir::Expr divisor) const { return pool_.sub(divisor, pool_.integer(1)); }

 private:
  ir::Expr both(ir::ExprOp op, ir::Expr x, ir::Expr y) const {
    return x && y ? pool_.make(op, {x, y}) : nullptr;
  }

  ir::ExprPool& pool_;
  ir::Expr divisor_ = nullptr;
  bool positive_ = false;
  std::vector<std::optional<Bounds>> of_;
};

}  // namespace

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
  const Operands operands(pool_, *this, atom);
  const Bounds found{low_bound(atom->op, operands), high_bound(atom->op, operands)};
  return found.low && found.high ? std::optional(found) : std::nullopt;
}

}  // namespace redfuser::cascade
