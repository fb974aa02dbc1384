#include "cascade/visibility/key_ranges.h"

#include <algorithm>

#include "ir/ranges.h"

namespace redfuser::cascade {
namespace {

using Kind = IndexCondition::Kind;
// Null: open to that side.
using Ranges = std::vector<KeyRange>;

class Solver {
 public:
  Solver(ir::ExprPool& pool, const IndexBounds& bounds, ir::Expr key)
      : pool_(pool), bounds_(bounds), key_(key) {}

  // Keys for which some row of the tile may fulfil the condition.
  Ranges solve(const IndexCondition& condition) {
    switch (condition.kind) {
      case Kind::All:
        return of_all(condition.parts);
      case Kind::Any:
        return of_any(condition.parts);
      case Kind::NonNegative:
        return of_nonnegative(condition.expr);
      case Kind::Opaque:
        if (!condition.expr->is_constant(0)) return everything();
        return {};
    }
    return everything();
  }

 private:
  static Ranges everything() { return {{nullptr, nullptr}}; }

  ir::Expr merged(ir::ExprOp op, ir::Expr a, ir::Expr b, bool one_is_enough) {
    if (a && b) return a == b ? a : pool_.make(op, {a, b});
    return one_is_enough ? (a ? a : b) : nullptr;
  }
  KeyRange intersection(const KeyRange& a, const KeyRange& b) {
    return {merged(ir::ExprOp::Max, a.begin, b.begin, true),
            merged(ir::ExprOp::Min, a.end, b.end, true)};
  }
  KeyRange hull(const KeyRange& a, const KeyRange& b) {
    return {merged(ir::ExprOp::Min, a.begin, b.begin, false),
            merged(ir::ExprOp::Max, a.end, b.end, false)};
  }
  Ranges one(const Ranges& ranges) {
    KeyRange all = ranges[0];
    for (const KeyRange& range : ranges) all = hull(all, range);
    return {all};
  }

  Ranges of_all(const std::vector<IndexCondition>& parts) {
    Ranges result = everything();
    for (const IndexCondition& part : parts) {
      Ranges next = solve(part);
      if (result.size() * next.size() > kMaxKeyRanges) {
        Ranges& longer = next.size() > result.size() ? next : result;
        longer = one(longer);
      }
      Ranges both;
      for (const KeyRange& a : result) {
        for (const KeyRange& b : next) add(both, intersection(a, b));
      }
      result = std::move(both);
    }
    return result;
  }

  Ranges of_any(const std::vector<IndexCondition>& parts) {
    Ranges result;
    for (const IndexCondition& part : parts) {
      for (const KeyRange& range : solve(part)) add(result, range);
    }
    return result.size() > kMaxKeyRanges ? one(result) : result;
  }

  // Ranges that are open to, or end at, the same side are one.
  void add(Ranges& ranges, const KeyRange& range) {
    for (KeyRange& other : ranges) {
      if (other.begin != range.begin && other.end != range.end) continue;
      other = hull(other, range);
      return;
    }
    ranges.push_back(range);
  }

  // f = coefficient · atom + rest >= 0, where only the atom holds the key.
  Ranges of_nonnegative(ir::Expr f) {
    if (!f->depends_on(key_)) return of_rows(f);
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
      if (atom || monomial.size() != 1) return everything();
      atom = monomial[0];
      coefficient = c;
    }
    auto bounds = bounds_.of(from_polynomial(pool_, rest));
    if (!atom || !bounds) return everything();
    ir::Expr quotient =
        pool_.floordiv(bounds->high, pool_.integer(coefficient < 0 ? -coefficient : coefficient));
    if (coefficient < 0) return of_atom(atom, quotient, true);
    return of_atom(atom, pool_.sub(pool_.integer(0), quotient), false);
  }

  Ranges of_rows(ir::Expr f) {
    auto bounds = bounds_.of(f);
    if (!bounds) return everything();
    ir::Expr none = pool_.make(ir::ExprOp::Less, {bounds->high, pool_.integer(0)});
    if (none->is_constant(0)) return everything();
    if (none->is_constant()) return {};
    return {{nullptr, pool_.select(none, pool_.integer(0), key_->extent())}};
  }

  // atom <= limit if `below`, else atom >= limit.
  Ranges of_atom(ir::Expr atom, ir::Expr limit, bool below) {
    ir::Expr one = pool_.integer(1);
    if (atom == key_)
      return {below ? KeyRange{nullptr, pool_.add(limit, one)} : KeyRange{limit, nullptr}};
    if (atom->op != ir::ExprOp::FloorDiv) return everything();
    ir::Expr divisor = atom->args[1];
    if (bounds_.varies(divisor) ||
        !proved_less(pool_, pool_.integer(0), divisor, ir::kWhereElementsExist))
      return everything();
    if (!below) return of_nonnegative(pool_.sub(atom->args[0], pool_.mul(limit, divisor)));
    ir::Expr last = pool_.sub(pool_.mul(pool_.add(limit, one), divisor), one);
    return of_nonnegative(pool_.sub(last, atom->args[0]));
  }

  ir::ExprPool& pool_;
  const IndexBounds& bounds_;
  ir::Expr key_;
};

}  // namespace

std::vector<KeyRange> key_ranges(ir::ExprPool& pool, const IndexCondition& condition,
                                 const IndexBounds& bounds, ir::Expr key) {
  Ranges ranges = Solver(pool, bounds, key).solve(condition);
  ir::Expr zero = pool.integer(0);
  if (ranges.empty()) return {{zero, zero}};
  for (KeyRange& range : ranges) {
    range.begin = range.begin ? pool.make(ir::ExprOp::Max, {range.begin, zero}) : zero;
    range.end = range.end ? pool.make(ir::ExprOp::Min, {range.end, key->extent()}) : key->extent();
  }
  return ranges;
}

}  // namespace redfuser::cascade
