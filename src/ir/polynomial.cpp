#include "ir/polynomial.h"

#include <algorithm>

#include "base/error.h"
#include "ir/fold.h"
#include "ir/ranges.h"

namespace redfuser::ir {

bool MonomialLess::operator()(const Monomial& a, const Monomial& b) const {
  if (a.size() != b.size()) return a.size() < b.size();
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), ById());
}

// Adds a term; cancelled terms are removed.
static void add_term(Polynomial& to, Monomial monomial, int64_t coefficient) {
  if (coefficient == 0) return;
  const auto [term, added] = to.try_emplace(std::move(monomial), coefficient);
  if (added) return;
  if (__builtin_add_overflow(term->second, coefficient, &term->second)) {
    throw CoefficientOverflow();
  }
  if (term->second == 0) to.erase(term);
}

static int64_t product_of(int64_t a, int64_t b) {
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product)) throw CoefficientOverflow();
  return product;
}

Polynomial operator+(Polynomial a, const Polynomial& b) {
  for (auto& [monomial, coefficient] : b) add_term(a, monomial, coefficient);
  return a;
}

Polynomial operator*(const Polynomial& a, const Polynomial& b) {
  Polynomial result;
  for (auto& [left, x] : a) {
    for (auto& [right, y] : b) {
      Monomial product(left.size() + right.size());
      std::merge(left.begin(), left.end(), right.begin(), right.end(), product.begin(), ById());
      add_term(result, std::move(product), product_of(x, y));
    }
  }
  return result;
}

bool expands(const Polynomial& a, const Polynomial& b) {
  constexpr size_t kMaxTerms = 4096, kMaxFactors = 64;
  if (a.empty() || b.empty()) return true;
  // The longest monomials are the last.
  return a.size() * b.size() <= kMaxTerms &&
         a.rbegin()->first.size() + b.rbegin()->first.size() <= kMaxFactors;
}

Polynomial scaled(const Polynomial& a, int64_t factor) {
  if (factor == 0) return {};
  Polynomial result = a;
  for (auto& [monomial, coefficient] : result) coefficient = product_of(coefficient, factor);
  return result;
}

// A product of atoms: one of sums or of products is a product that does not expand.
static bool is_monomial(Expr expr) {
  return expr->op == ExprOp::Mul &&
         std::none_of(expr->args.begin(), expr->args.end(),
                      [](Expr arg) { return arg->op == ExprOp::Add || arg->op == ExprOp::Mul; });
}

// Adds an expression to `to`.
static void add_expression(Polynomial& to, Expr expr) {
  if (expr->op == ExprOp::Constant) return add_term(to, {}, expr->integer);
  if (expr->dtype == DType::Int64 && expr->op == ExprOp::Add) {
    for (Expr arg : expr->args) add_expression(to, arg);
    return;
  }
  if (expr->dtype != DType::Int64 || !is_monomial(expr)) return add_term(to, {expr}, 1);
  Monomial atoms;
  atoms.reserve(expr->args.size());
  int64_t coefficient = 1;
  for (Expr arg : expr->args) {
    if (arg->op == ExprOp::Constant) {
      coefficient = product_of(coefficient, arg->integer);
    } else {
      atoms.push_back(arg);
    }
  }
  std::sort(atoms.begin(), atoms.end(), ById());
  add_term(to, std::move(atoms), coefficient);
}

Polynomial to_polynomial(Expr expr) {
  Polynomial result;
  add_expression(result, expr);
  return result;
}

namespace {

bool contains(const Polynomial& polynomial, const Polynomial& part) {
  return !part.empty() && std::all_of(part.begin(), part.end(), [&](auto& term) {
    auto found = polynomial.find(term.first);
    return found != polynomial.end() && found->second == term.second;
  });
}

// The atoms x mod e.
std::vector<Expr> remainders_of(const Polynomial& polynomial, Expr x) {
  std::vector<Expr> result;
  for (auto& [monomial, coefficient] : polynomial) {
    for (Expr atom : monomial) {
      if (atom->op == ExprOp::FloorMod && atom->args[0] == x) result.push_back(atom);
    }
  }
  return result;
}

// x mod d + d·⌊x/d⌋ = x and x mod d + d·(⌊x/d⌋ mod e) = x mod (d·e), for any common cofactor.
bool recombine(ExprPool& pool, Polynomial& polynomial) {
  for (auto& [monomial, coefficient] : polynomial) {
    for (size_t i = 0; i < monomial.size(); ++i) {
      Expr atom = monomial[i];
      if (atom->op != ExprOp::FloorMod) continue;
      Monomial rest = monomial;
      rest.erase(rest.begin() + static_cast<long>(i));
      const Polynomial cofactor{{rest, coefficient}};
      Expr quotient = pool.floordiv(atom->args[0], atom->args[1]);
      const Polynomial other = cofactor * to_polynomial(atom->args[1]) * to_polynomial(quotient);
      const Polynomial modulo{{monomial, coefficient}};
      if (contains(polynomial, other)) {
        polynomial = polynomial + scaled(other, -1) + scaled(modulo, -1) +
                     cofactor * to_polynomial(atom->args[0]);
        return true;
      }
      for (Expr digit : remainders_of(polynomial, quotient)) {
        const Polynomial above = cofactor * to_polynomial(atom->args[1]) * Polynomial{{{digit}, 1}};
        if (!contains(polynomial, above)) continue;
        Expr both = pool.floormod(atom->args[0], pool.mul(atom->args[1], digit->args[1]));
        polynomial =
            polynomial + scaled(above, -1) + scaled(modulo, -1) + cofactor * to_polynomial(both);
        return true;
      }
    }
  }
  return false;
}

}  // namespace

// Builds the canonical nodes without ExprPool::make, which calls this file.
class PolynomialBuilder {
 public:
  static Expr term(ExprPool& pool, const Monomial& monomial, int64_t coefficient) {
    if (monomial.empty()) return pool.integer(coefficient);
    if (coefficient == 1 && monomial.size() == 1) return monomial[0];
    ExprNode node{ExprOp::Mul, DType::Int64};
    if (coefficient != 1) node.args.push_back(pool.integer(coefficient));
    node.args.insert(node.args.end(), monomial.begin(), monomial.end());
    return pool.intern(std::move(node));
  }
  static Expr sum(ExprPool& pool, std::vector<Expr> terms) {
    ExprNode node{ExprOp::Add, DType::Int64};
    node.args = std::move(terms);
    return pool.intern(std::move(node));
  }
  static Expr floor(ExprPool& pool, bool modulo, Expr a, Expr b) {
    ExprNode node{modulo ? ExprOp::FloorMod : ExprOp::FloorDiv, DType::Int64};
    node.args = {a, b};
    return pool.intern(std::move(node));
  }
};

Expr from_polynomial(ExprPool& pool, const Polynomial& input) {
  Polynomial polynomial = input;
  while (recombine(pool, polynomial)) {
  }
  if (polynomial.empty()) return pool.integer(0);
  std::vector<Expr> terms;
  for (auto& [monomial, coefficient] : polynomial) {
    terms.push_back(PolynomialBuilder::term(pool, monomial, coefficient));
  }
  return terms.size() == 1 ? terms[0] : PolynomialBuilder::sum(pool, std::move(terms));
}

namespace {

// monomial / divisor, if the divisor's atoms are all in it.
std::optional<Monomial> without(const Monomial& monomial, const Monomial& divisor) {
  Monomial rest = monomial;
  for (Expr atom : divisor) {
    auto found = std::find(rest.begin(), rest.end(), atom);
    if (found == rest.end()) return std::nullopt;
    rest.erase(found);
  }
  return rest;
}

}  // namespace

Division divide(const Polynomial& dividend, const Polynomial& divisor) {
  Division result{{}, dividend};
  if (divisor.empty()) return result;
  const auto& [lead, lead_coefficient] = *divisor.rbegin();
  for (bool progress = true; progress;) {
    progress = false;
    for (auto it = result.remainder.rbegin(); it != result.remainder.rend(); ++it) {
      auto rest = without(it->first, lead);
      if (!rest || it->second % lead_coefficient != 0) continue;
      const Polynomial quotient{{*rest, it->second / lead_coefficient}};
      result.quotient = result.quotient + quotient;
      result.remainder = result.remainder + scaled(quotient * divisor, -1);
      progress = true;
      break;
    }
    if (result.quotient.size() > 64) break;
  }
  return result;
}

namespace {

// a = c·g + t with 0 <= t < g and b = h·g: ⌊a/b⌋ = ⌊c/h⌋ and a mod b = (c mod h)·g + t.
Expr fold_common_factor(ExprPool& pool, bool modulo, const Polynomial& a, const Polynomial& b,
                        const Positive& positive) {
  for (auto it = a.rbegin(); it != a.rend(); ++it) {
    Monomial sizes;
    for (Expr atom : it->first) {
      if (atom->free_axes.empty()) sizes.push_back(atom);
    }
    const Polynomial g{{sizes, std::abs(it->second)}};
    if (sizes.empty() && std::abs(it->second) == 1) continue;
    Division high = divide(a, g);
    Division divisor = divide(b, g);
    if (!divisor.remainder.empty() || high.quotient.empty()) continue;
    Expr t = from_polynomial(pool, high.remainder);
    if (!proved_nonnegative(t, positive) ||
        !proved_less(pool, t, from_polynomial(pool, g), positive)) {
      continue;
    }
    Expr c = from_polynomial(pool, high.quotient);
    Expr h = from_polynomial(pool, divisor.quotient);
    if (!modulo) return pool.floordiv(c, h);
    return pool.add(pool.mul(pool.floormod(c, h), from_polynomial(pool, g)), t);
  }
  return nullptr;
}

// Where the remainder is proved to lie in [0, b) or in [-b, 0).
Expr fold_remainder(ExprPool& pool, bool modulo, const Division& division, Expr b,
                    const Positive& positive) {
  Expr quotient = from_polynomial(pool, division.quotient);
  Expr remainder = from_polynomial(pool, division.remainder);
  if (proved_nonnegative(remainder, positive) && proved_less(pool, remainder, b, positive)) {
    return modulo ? remainder : quotient;
  }
  // One below.
  Expr lifted = pool.add(remainder, b);
  if (proved_nonnegative(lifted, positive) &&
      proved_less(pool, remainder, pool.integer(0), positive)) {
    return modulo ? lifted : pool.sub(quotient, pool.integer(1));
  }
  return nullptr;
}

// Each coefficient by its nearest multiple of a constant: ⌊(997 i + 499 + j)/998⌋ is i where
// 499 - i + j lies in [0, 998), a row of a matrix that is shifted by its number.
std::optional<Division> divide_to_nearest(const Polynomial& dividend, Expr b) {
  if (b->op != ExprOp::Constant || b->integer < 2) return std::nullopt;
  Division result{{}, dividend};
  for (const auto& [monomial, coefficient] : dividend) {
    if (monomial.empty()) continue;
    const int64_t below = coefficient / b->integer, rest = coefficient % b->integer;
    const int64_t nearest = below + (2 * rest > b->integer) - (2 * rest < -b->integer);
    if (nearest != 0) result.quotient = result.quotient + Polynomial{{monomial, nearest}};
  }
  if (result.quotient.empty()) return std::nullopt;
  result.remainder = result.remainder + scaled(result.quotient, -b->integer);
  return result;
}

}  // namespace

Expr fold_floor(ExprPool& pool, bool modulo, Expr a, Expr b) {
  if (b->is_constant(1)) return modulo ? pool.integer(0) : a;
  if (b->is_constant(0)) return nullptr;
  const Polynomial divisor = to_polynomial(b);
  const Positive positive = nonzero(b);
  const Division division = divide(to_polynomial(a), divisor);
  if (Expr proved = fold_remainder(pool, modulo, division, b, positive)) return proved;
  if (const auto nearest = divide_to_nearest(to_polynomial(a), b)) {
    if (Expr proved = fold_remainder(pool, modulo, *nearest, b, positive)) return proved;
  }
  Expr quotient = from_polynomial(pool, division.quotient);
  Expr remainder = from_polynomial(pool, division.remainder);
  if (Expr common = fold_common_factor(pool, modulo, division.remainder, divisor, positive)) {
    return modulo ? common : pool.add(quotient, common);
  }
  if (remainder->op == ExprOp::FloorDiv && !modulo) {  // ⌊⌊x/p⌋/q⌋ = ⌊x/(pq)⌋
    return pool.add(quotient, pool.floordiv(remainder->args[0], pool.mul(remainder->args[1], b)));
  }
  if (remainder->op == ExprOp::FloorMod) {
    const Division parts = divide(to_polynomial(remainder->args[1]), divisor);
    if (parts.remainder.empty()) {
      Expr x = remainder->args[0];
      if (modulo) return pool.floormod(x, b);  // (x mod pq) mod q = x mod q
      // ⌊(x mod pq)/q⌋ = ⌊x/q⌋ mod p
      Expr digit = pool.floormod(pool.floordiv(x, b), from_polynomial(pool, parts.quotient));
      return pool.add(quotient, digit);
    }
  }
  Expr atom = PolynomialBuilder::floor(pool, modulo, remainder, b);
  return modulo ? atom : pool.add(quotient, atom);
}

std::optional<Affine> affine_in(ExprPool& pool, Expr expr, Expr axis) {
  if (!expr->depends_on(axis)) return Affine{expr, pool.integer(0)};
  Polynomial base, stride;
  for (auto& [monomial, coefficient] : to_polynomial(expr)) {
    const auto uses = std::count(monomial.begin(), monomial.end(), axis);
    Monomial rest = monomial;
    std::erase(rest, axis);
    const bool hidden =
        std::any_of(rest.begin(), rest.end(), [&](Expr atom) { return atom->depends_on(axis); });
    if (uses > 1 || hidden) return std::nullopt;
    Polynomial& part = uses ? stride : base;
    part = part + Polynomial{{rest, coefficient}};
  }
  return Affine{from_polynomial(pool, base), from_polynomial(pool, stride)};
}

}  // namespace redfuser::ir
