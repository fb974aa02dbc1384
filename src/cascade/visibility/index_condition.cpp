#include "cascade/visibility/index_condition.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "ir/polynomial.h"
#include "ir/ranges.h"

namespace redfuser::cascade {
namespace {

using Kind = IndexCondition::Kind;

constexpr int kMaxResolved = 6;  // nested forms that are resolved; each doubles the condition

bool is_integer(ir::Expr e) { return e->dtype != DType::Bool && !is_float(e->dtype); }

// ⌊√n⌋ for n >= 0.
int64_t integer_root(int64_t n) {
  auto root = static_cast<int64_t>(std::sqrt(static_cast<double>(n)));
  while (root > 0 && root > n / root) --root;
  while (root + 1 <= n / (root + 1)) ++root;
  return root;
}

class Builder {
 public:
  explicit Builder(ir::ExprPool& pool) : pool_(pool) {}

  IndexCondition of(ir::Expr e, bool wanted, int depth) {
    if (e->op == ir::ExprOp::Not) return of(e->args[0], !wanted, depth);
    if (e->op == ir::ExprOp::And || e->op == ir::ExprOp::Or) {
      const Kind kind = (e->op == ir::ExprOp::And) == wanted ? Kind::All : Kind::Any;
      return {kind, {of(e->args[0], wanted, depth), of(e->args[1], wanted, depth)}};
    }
    const bool less = e->op == ir::ExprOp::Less, equal = e->op == ir::ExprOp::Equal;
    if ((less || equal || e->op == ir::ExprOp::LessEqual) && is_integer(e->args[0])) {
      ir::Expr a = wide(e->args[0]), b = wide(e->args[1]);
      if (a && b && equal) return equality(a, b, wanted, depth);
      if (a && b) return wanted ? ordered(a, b, less, depth) : ordered(b, a, !less, depth);
    }
    if ((less || e->op == ir::ExprOp::LessEqual) && is_float(e->args[0]->dtype)) {
      if (auto found = of_floats(e, wanted, depth)) return *found;
    }
    return {Kind::Opaque, {}, wanted ? e : negated(e)};
  }

  IndexCondition nonnegative(ir::Expr f, int depth) {
    if (depth > 0 && !f->free_axes.empty()) {
      const ir::Polynomial terms = to_polynomial(f);
      for (const auto& [monomial, coefficient] : terms) {
        if (monomial.size() != 1 || monomial[0]->free_axes.empty()) continue;
        ir::Polynomial rest = terms;
        rest.erase(monomial);
        if (auto found = resolved(monomial[0], coefficient, from_polynomial(pool_, rest), depth)) {
          return *found;
        }
      }
      if (auto found = of_square(terms)) return *found;
    }
    return {Kind::NonNegative, {}, f};
  }

 private:
  ir::Expr negated(ir::Expr e) {
    return e->is_constant() ? pool_.boolean(e->integer == 0) : pool_.make(ir::ExprOp::Not, {e});
  }

  // a <= b, or a < b.
  IndexCondition ordered(ir::Expr a, ir::Expr b, bool strict, int depth) {
    ir::Expr f = pool_.sub(b, a);
    return nonnegative(strict ? pool_.sub(f, pool_.integer(1)) : f, depth);
  }

  // The index of a cast that keeps its value: 0 <= f < 2^digits; else null.
  ir::Expr exact_index(ir::Expr e, ir::Expr limit) {
    if (e->op != ir::ExprOp::Cast || !is_integer(e->args[0])) return nullptr;
    ir::Expr f = wide(e->args[0]);
    const bool exact =
        f && !f->free_axes.empty() && ir::proved_nonnegative(f) && ir::proved_less(pool_, f, limit);
    return exact ? f : nullptr;
  }

  // float(f) < b, b < float(f), or the same with <=.
  std::optional<IndexCondition> of_floats(ir::Expr e, bool wanted, int depth) {
    const DType dtype = e->args[0]->dtype;
    ir::Expr limit = pool_.integer(int64_t{1} << digits_of(dtype));
    ir::Expr low = exact_index(e->args[0], limit), high = exact_index(e->args[1], limit);
    if ((low == nullptr) == (high == nullptr)) return std::nullopt;
    const bool less = e->op == ir::ExprOp::Less;
    ir::Expr bound = e->args[low ? 1 : 0];
    const auto clamped = [&](ir::ExprOp op, double value, ir::Expr x) {
      return pool_.make(op, {x, pool_.number(value, dtype)});
    };
    // f < b where f < ⌈b⌉, f <= b where f <= ⌊b⌋, and b <= f where ⌈b⌉ <= f.
    const bool up = (low != nullptr) == less;
    ir::Expr whole = pool_.make(up ? ir::ExprOp::Ceil : ir::ExprOp::Floor, {bound});
    whole = clamped(ir::ExprOp::Min, static_cast<double>(limit->integer), whole);
    whole = pool_.cast(DType::Int64, clamped(ir::ExprOp::Max, -1, whole));
    ir::Expr a = low ? low : whole, b = low ? whole : high;
    IndexCondition ordered_here = wanted ? ordered(a, b, less, depth) : ordered(b, a, !less, depth);
    // No number is below NaN, or above it.
    ir::Expr nan = pool_.make(ir::ExprOp::IsNaN, {bound});
    return IndexCondition{
        wanted ? Kind::All : Kind::Any,
        {{Kind::Opaque, {}, wanted ? negated(nan) : nan}, std::move(ordered_here)}};
  }

  // Integers of so many bits are floats of the type.
  static int digits_of(DType dtype) {
    if (dtype == DType::Float64) return std::numeric_limits<double>::digits;
    if (dtype == DType::Float32) return std::numeric_limits<float>::digits;
    constexpr int kHalf = 11, kBFloat16 = 8;
    return dtype == DType::Float16 ? kHalf : kBFloat16;
  }

  IndexCondition equality(ir::Expr a, ir::Expr b, bool wanted, int depth) {
    return {wanted ? Kind::All : Kind::Any,
            {ordered(a, b, !wanted, depth), ordered(b, a, !wanted, depth)}};
  }

  // coefficient · atom + rest >= 0 of an atom that is a choice between two values.
  std::optional<IndexCondition> resolved(ir::Expr atom, int64_t coefficient, ir::Expr rest,
                                         int depth) {
    const auto with = [&](ir::Expr value) {
      return nonnegative(pool_.add(pool_.mul(pool_.integer(coefficient), value), rest), depth - 1);
    };
    const bool grows = coefficient > 0;
    switch (atom->op) {
      case ir::ExprOp::Abs:
        return IndexCondition{
            grows ? Kind::Any : Kind::All,
            {with(atom->args[0]), with(pool_.sub(pool_.integer(0), atom->args[0]))}};
      case ir::ExprOp::Max:
      case ir::ExprOp::Min:
        return IndexCondition{(atom->op == ir::ExprOp::Max) == grows ? Kind::Any : Kind::All,
                              {with(atom->args[0]), with(atom->args[1])}};
      case ir::ExprOp::Select: {
        IndexCondition yes = of(atom->args[0], true, depth - 1);
        IndexCondition no = of(atom->args[0], false, depth - 1);
        return IndexCondition{Kind::Any,
                              {{Kind::All, {std::move(yes), with(atom->args[1])}},
                               {Kind::All, {std::move(no), with(atom->args[2])}}}};
      }
      default:
        return std::nullopt;
    }
  }

  // ±x² + constant >= 0 with x a sum of atoms.
  std::optional<IndexCondition> of_square(ir::Polynomial terms) {
    int64_t sign = 0;
    for (const auto& [monomial, coefficient] : terms) {
      if (monomial.size() == 2 && monomial[0] == monomial[1]) sign = coefficient > 0 ? 1 : -1;
    }
    if (sign == 0) return std::nullopt;
    int64_t constant = terms[{}];
    terms.erase(ir::Monomial{});
    auto x = root_of(scaled(terms, sign));
    if (!x) return std::nullopt;
    constant -= sign * (*x)[{}] * (*x)[{}];
    ir::Expr root = from_polynomial(pool_, *x);
    const auto at_least = [&](int64_t bound) {
      ir::Expr least = pool_.integer(bound);
      return std::vector<IndexCondition>{
          {Kind::NonNegative, {}, pool_.sub(root, least)},
          {Kind::NonNegative, {}, pool_.sub(pool_.sub(pool_.integer(0), root), least)}};
    };
    if (sign > 0 && constant >= 0) return IndexCondition{Kind::All};
    if (sign > 0) return IndexCondition{Kind::Any, at_least(integer_root(-constant - 1) + 1)};
    if (constant < 0) return IndexCondition{Kind::Any};
    return IndexCondition{Kind::All, at_least(-integer_root(constant))};
  }

  // x with x² equal to the polynomial, but for constants.
  static std::optional<ir::Polynomial> root_of(const ir::Polynomial& square) {
    ir::Polynomial root;
    ir::Expr first = nullptr;
    for (const auto& [monomial, coefficient] : square) {
      if (monomial.size() > 2) return std::nullopt;
      if (monomial.size() == 1 || monomial[0] != monomial[1]) continue;
      const int64_t own = coefficient < 0 ? 0 : integer_root(coefficient);
      if (own == 0 || own * own != coefficient) return std::nullopt;
      if (!first) first = monomial[0];
      ir::Monomial pair{first, monomial[0]};
      std::sort(pair.begin(), pair.end(), ir::ById());
      const auto cross = square.find(pair);
      const bool opposite = first != monomial[0] && cross != square.end() && cross->second < 0;
      root[{monomial[0]}] = opposite ? -own : own;
    }
    const auto linear = square.find({first});
    if (linear != square.end()) root[{}] = linear->second / (2 * root[{first}]);
    ir::Polynomial found = root * root;
    found.erase(ir::Monomial{});
    return found == square ? std::optional(root) : std::nullopt;
  }

  // The integer expression in Int64, without casts that preserve every value. Null if the
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
    switch (e->op) {
      case ir::ExprOp::Read:
        return pool_.cast(DType::Int64, e);
      case ir::ExprOp::Add:
      case ir::ExprOp::Sub:
      case ir::ExprOp::Mul:
      case ir::ExprOp::Neg:
      case ir::ExprOp::Abs:
      case ir::ExprOp::Min:
      case ir::ExprOp::Max:
        return of_wide(e);
      default:
        return nullptr;
    }
  }

  ir::Expr of_wide(ir::Expr e) {
    std::vector<ir::Expr> args;
    for (ir::Expr arg : e->args) {
      args.push_back(wide(arg));
      if (!args.back()) return nullptr;
    }
    return pool_.make(e->op, args);
  }

  ir::ExprPool& pool_;
};

}  // namespace

IndexCondition index_condition(ir::ExprPool& pool, ir::Expr e, bool wanted) {
  return Builder(pool).of(e, wanted, kMaxResolved);
}

IndexCondition negation(ir::ExprPool& pool, const IndexCondition& condition) {
  if (condition.kind == Kind::NonNegative) {
    // -f - 1 >= 0.
    return {Kind::NonNegative, {}, pool.sub(pool.integer(-1), condition.expr)};
  }
  if (condition.kind == Kind::Opaque) {
    ir::Expr e = condition.expr;
    if (e->is_constant()) return {Kind::Opaque, {}, pool.boolean(e->integer == 0)};
    return {Kind::Opaque, {}, pool.make(ir::ExprOp::Not, {e})};
  }
  IndexCondition result{condition.kind == Kind::All ? Kind::Any : Kind::All};
  for (const IndexCondition& part : condition.parts) result.parts.push_back(negation(pool, part));
  return result;
}

}  // namespace redfuser::cascade
