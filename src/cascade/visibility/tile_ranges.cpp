#include "cascade/visibility/tile_ranges.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "ir/polynomial.h"
#include "ir/ranges.h"

namespace redfuser::cascade {
namespace {

struct Bounds {
  ir::Expr low, high;
};

class TileAnalysis {
 public:
  TileAnalysis(ir::ExprPool& pool, const std::vector<ir::Expr>& rows, ir::Expr key)
      : pool_(pool), key_(key) {
    for (ir::Expr row : rows) ranges_.rows.push_back(corner(row));
    ranges_.key = corner(key);
    corners_ = ranges_.rows;
    corners_.push_back(ranges_.key);
  }

  TileRanges run(ir::Expr visible) {
    ranges_.may = possible(visible, true);
    ranges_.full = negation(possible(visible, false));
    const Range range = solve(visible, true);
    ir::Expr zero = pool_.integer(0);
    ranges_.begin = range.begin ? pool_.make(ir::ExprOp::Max, {range.begin, zero}) : zero;
    ranges_.end =
        range.end ? pool_.make(ir::ExprOp::Min, {range.end, key_->extent()}) : key_->extent();
    return std::move(ranges_);
  }

 private:
  // Null: no bound.
  struct Range {
    ir::Expr begin = nullptr, end = nullptr;
  };

  TileCorner corner(ir::Expr axis) {
    return {axis, pool_.shared_axis(fmt::format("first of {}", axis->integer), axis->extent()),
            pool_.shared_axis(fmt::format("last of {}", axis->integer), axis->extent())};
  }

  ir::Expr negation(ir::Expr e) {
    return e->is_constant() ? pool_.boolean(e->integer == 0) : pool_.make(ir::ExprOp::Not, {e});
  }
  ir::Expr both(ir::Expr a, ir::Expr b) { return pool_.make(ir::ExprOp::And, {a, b}); }
  ir::Expr either(ir::Expr a, ir::Expr b) { return pool_.make(ir::ExprOp::Or, {a, b}); }
  ir::Expr at_least_zero(ir::Expr e) {
    return pool_.make(ir::ExprOp::LessEqual, {pool_.integer(0), e});
  }

  bool varies(ir::Expr e) const {
    return std::any_of(corners_.begin(), corners_.end(),
                       [&](const TileCorner& c) { return e->depends_on(c.axis); });
  }

  static bool compares_integers(ir::Expr e) {
    return (e->op == ir::ExprOp::Less || e->op == ir::ExprOp::LessEqual ||
            e->op == ir::ExprOp::Equal) &&
           e->args[0]->dtype != DType::Bool && !is_float(e->args[0]->dtype);
  }

  // An integer expression as one of Int64; casts of values that fit are no change. Null if the
  // arithmetic could wrap.
  ir::Expr wide(ir::Expr e) {
    if (e->dtype == DType::Int64) {
      if (e->op != ir::ExprOp::Cast || is_float(e->args[0]->dtype)) return e;
      if (e->args[0]->dtype == DType::Bool) return e;
      ir::Expr inner = wide(e->args[0]);
      return inner ? inner : e;
    }
    if (e->is_constant()) return pool_.integer(e->integer);
    if (e->dtype != DType::Int32) return nullptr;
    if (e->op == ir::ExprOp::Cast && e->args[0]->dtype == DType::Int64 && !e->args[0]->has_read) {
      return e->args[0];
    }
    if (e->has_read && e->op != ir::ExprOp::Read) return nullptr;
    if (e->op == ir::ExprOp::Read) return pool_.cast(DType::Int64, e);
    if (e->op != ir::ExprOp::Add && e->op != ir::ExprOp::Sub && e->op != ir::ExprOp::Mul)
      return nullptr;
    std::vector<ir::Expr> args;
    for (ir::Expr arg : e->args) {
      args.push_back(wide(arg));
      if (!args.back()) return nullptr;
    }
    return pool_.make(e->op, args);
  }

  // b - a, or null.
  ir::Expr difference(ir::Expr a, ir::Expr b) {
    ir::Expr left = wide(a), right = wide(b);
    return left && right ? pool_.sub(right, left) : nullptr;
  }

  // f with `comparison` equal to `want` where f >= 0; not for Equal.
  ir::Expr as_nonnegative(ir::Expr e, bool want) {
    ir::Expr f = difference(e->args[0], e->args[1]);
    if (!f) return nullptr;
    const bool strict = (e->op == ir::ExprOp::Less) == want;
    if (!want) f = pool_.sub(pool_.integer(0), f);
    return strict ? pool_.sub(f, pool_.integer(1)) : f;
  }

  // Whether some element of the tile may have e == want.
  ir::Expr possible(ir::Expr e, bool want) {
    if (!varies(e)) return want ? e : negation(e);
    if (e->op == ir::ExprOp::Not) return possible(e->args[0], !want);
    if (e->op == ir::ExprOp::And || e->op == ir::ExprOp::Or) {
      ir::Expr a = possible(e->args[0], want), b = possible(e->args[1], want);
      return (e->op == ir::ExprOp::And) == want ? both(a, b) : either(a, b);
    }
    ir::Expr unknown = pool_.boolean(true);
    if (!compares_integers(e)) return unknown;
    if (e->op != ir::ExprOp::Equal) {
      ir::Expr f = as_nonnegative(e, want);
      auto bounds = f ? bounds_of(f) : std::nullopt;
      return bounds ? at_least_zero(bounds->high) : unknown;
    }
    ir::Expr f = difference(e->args[0], e->args[1]);
    auto bounds = f ? bounds_of(f) : std::nullopt;
    if (!bounds) return unknown;
    ir::Expr zero = pool_.integer(0);
    if (want) return both(at_least_zero(bounds->high), at_least_zero(pool_.sub(zero, bounds->low)));
    return either(pool_.make(ir::ExprOp::Less, {bounds->low, zero}),
                  pool_.make(ir::ExprOp::Less, {zero, bounds->high}));
  }

  std::optional<Bounds> bounds_of(ir::Expr e) {
    if (!varies(e)) return Bounds{e, e};
    ir::Expr low = pool_.integer(0), high = low;
    for (const auto& [monomial, coefficient] : to_polynomial(e)) {
      auto part = monomial_bounds(monomial);
      if (!part) return std::nullopt;
      if (coefficient < 0) std::swap(part->low, part->high);
      ir::Expr factor = pool_.integer(coefficient);
      low = pool_.add(low, pool_.mul(factor, part->low));
      high = pool_.add(high, pool_.mul(factor, part->high));
    }
    return Bounds{low, high};
  }

  std::optional<Bounds> monomial_bounds(const ir::Monomial& monomial) {
    Bounds result{pool_.integer(1), pool_.integer(1)};
    for (ir::Expr atom : monomial) {
      auto part = atom_bounds(atom);
      if (!part) return std::nullopt;
      const bool signs = proved_nonnegative(result.low, ir::kWhereElementsExist) &&
                         proved_nonnegative(part->low, ir::kWhereElementsExist);
      if (signs) {
        result = {pool_.mul(result.low, part->low), pool_.mul(result.high, part->high)};
      } else if (part->low == part->high || result.low == result.high) {
        ir::Expr a = pool_.mul(result.low, part->low), b = pool_.mul(result.high, part->high);
        result = a == b ? Bounds{a, a}
                        : Bounds{pool_.make(ir::ExprOp::Min, {a, b}),
                                 pool_.make(ir::ExprOp::Max, {a, b})};
      } else {
        return std::nullopt;
      }
    }
    return result;
  }

  std::optional<Bounds> atom_bounds(ir::Expr atom) {
    if (!varies(atom)) return Bounds{atom, atom};
    for (const TileCorner& c : corners_) {
      if (atom == c.axis) return Bounds{c.first, c.last};
    }
    switch (atom->op) {
      case ir::ExprOp::FloorDiv:
      case ir::ExprOp::FloorMod: {
        ir::Expr divisor = atom->args[1];
        if (varies(divisor) ||
            !proved_less(pool_, pool_.integer(0), divisor, ir::kWhereElementsExist))
          return std::nullopt;
        if (atom->op == ir::ExprOp::FloorMod) {
          return Bounds{pool_.integer(0), pool_.sub(divisor, pool_.integer(1))};
        }
        auto inner = bounds_of(atom->args[0]);
        if (!inner) return std::nullopt;
        return Bounds{pool_.floordiv(inner->low, divisor), pool_.floordiv(inner->high, divisor)};
      }
      case ir::ExprOp::Min:
      case ir::ExprOp::Max: {
        auto a = bounds_of(atom->args[0]), b = bounds_of(atom->args[1]);
        if (!a || !b) return std::nullopt;
        return Bounds{pool_.make(atom->op, {a->low, b->low}),
                      pool_.make(atom->op, {a->high, b->high})};
      }
      case ir::ExprOp::Select: {
        auto a = bounds_of(atom->args[1]), b = bounds_of(atom->args[2]);
        if (!a || !b) return std::nullopt;
        return Bounds{pool_.make(ir::ExprOp::Min, {a->low, b->low}),
                      pool_.make(ir::ExprOp::Max, {a->high, b->high})};
      }
      default:
        return std::nullopt;
    }
  }

  // Keys for which some row of the tile may have e == want.
  Range solve(ir::Expr e, bool want) {
    if (e->is_constant() && (e->integer != 0) != want) return {key_->extent(), pool_.integer(0)};
    if (e->op == ir::ExprOp::Not) return solve(e->args[0], !want);
    if (e->op == ir::ExprOp::And || e->op == ir::ExprOp::Or) {
      const Range a = solve(e->args[0], want), b = solve(e->args[1], want);
      return (e->op == ir::ExprOp::And) == want ? intersection(a, b) : hull(a, b);
    }
    if (!e->depends_on(key_) || !compares_integers(e)) return {};
    if (e->op != ir::ExprOp::Equal) {
      ir::Expr f = as_nonnegative(e, want);
      return f ? solve_nonnegative(f) : Range{};
    }
    ir::Expr f = want ? difference(e->args[0], e->args[1]) : nullptr;
    if (!f) return {};
    return intersection(solve_nonnegative(f), solve_nonnegative(pool_.sub(pool_.integer(0), f)));
  }

  Range intersection(const Range& a, const Range& b) {
    return {merged(ir::ExprOp::Max, a.begin, b.begin, true),
            merged(ir::ExprOp::Min, a.end, b.end, true)};
  }
  Range hull(const Range& a, const Range& b) {
    return {merged(ir::ExprOp::Min, a.begin, b.begin, false),
            merged(ir::ExprOp::Max, a.end, b.end, false)};
  }
  ir::Expr merged(ir::ExprOp op, ir::Expr a, ir::Expr b, bool one_is_enough) {
    if (a && b) return pool_.make(op, {a, b});
    return one_is_enough ? (a ? a : b) : nullptr;
  }

  // f = coefficient · atom + rest >= 0, where only the atom holds the key.
  Range solve_nonnegative(ir::Expr f) {
    ir::Expr atom = nullptr;
    int64_t coefficient = 0;
    ir::Polynomial rest;
    for (const auto& [monomial, c] : to_polynomial(f)) {
      const bool holds = std::any_of(monomial.begin(), monomial.end(),
                                     [&](ir::Expr e) { return e->depends_on(key_); });
      if (!holds) {
        rest[monomial] = c;
        continue;
      }
      if (atom || monomial.size() != 1) return {};
      atom = monomial[0];
      coefficient = c;
    }
    auto bounds = bounds_of(from_polynomial(pool_, rest));
    if (!atom || !bounds) return {};
    ir::Expr quotient =
        pool_.floordiv(bounds->high, pool_.integer(coefficient < 0 ? -coefficient : coefficient));
    if (coefficient < 0) return solve_atom(atom, quotient, true);
    return solve_atom(atom, pool_.sub(pool_.integer(0), quotient), false);
  }

  // atom <= limit if `below`, else atom >= limit.
  Range solve_atom(ir::Expr atom, ir::Expr limit, bool below) {
    ir::Expr one = pool_.integer(1);
    if (atom == key_) return below ? Range{nullptr, pool_.add(limit, one)} : Range{limit, nullptr};
    if (atom->op != ir::ExprOp::FloorDiv) return {};
    ir::Expr divisor = atom->args[1];
    if (varies(divisor) || !proved_less(pool_, pool_.integer(0), divisor, ir::kWhereElementsExist))
      return {};
    if (!below) return solve_nonnegative(pool_.sub(atom->args[0], pool_.mul(limit, divisor)));
    ir::Expr last = pool_.sub(pool_.mul(pool_.add(limit, one), divisor), one);
    return solve_nonnegative(pool_.sub(last, atom->args[0]));
  }

  ir::ExprPool& pool_;
  ir::Expr key_;
  TileRanges ranges_{};
  std::vector<TileCorner> corners_;
};

}  // namespace

TileRanges tile_ranges(ir::ExprPool& pool, ir::Expr visible, const std::vector<ir::Expr>& rows,
                       ir::Expr key) {
  return TileAnalysis(pool, rows, key).run(visible);
}

}  // namespace redfuser::cascade
