#include "ir/ranges.h"

#include <algorithm>

#include "ir/interval.h"

namespace redfuser::ir {
namespace {

constexpr int kMaxDepth = 6;
// The number of terms of a product is exponential in its factors that are sums. With more terms
// than this nothing is proved.
constexpr size_t kMaxTerms = 1024;

// x of max(x, 0) as sizes are written (ops/sizes.h); null for other expressions.
Expr clamped_at_zero(Expr expr) {
  if (expr->op != ExprOp::Select || !expr->args[1]->is_constant(0)) return nullptr;
  const Expr test = expr->args[0], x = expr->args[2];
  const bool clamps =
      test->op == ExprOp::Less && test->args[0] == x && test->args[1]->is_constant(0);
  return clamps ? x : nullptr;
}

bool is_closed(Expr expr) { return expr->free_axes.empty() && !expr->has_read; }

bool is_loop_atom(Expr atom) { return !atom->free_axes.empty() || atom->has_read; }

class Prover {
 public:
  explicit Prover(const Positive& positive) : all_positive_(positive.all) {
    for (Expr size : positive.sizes) note_positive(size, kMaxDepth);
  }

  bool prove(const Polynomial& polynomial) {
    if (!all_positive_) {
      for (auto& [monomial, coefficient] : polynomial) {
        for (Expr atom : monomial) note_axes(atom, kMaxDepth);
      }
    }
    return nonnegative(polynomial, kMaxDepth);
  }

  // A sum or product with a tensor element of unknown magnitude may wrap around.
  bool may_wrap(const Polynomial& polynomial) const {
    const bool alone = polynomial.size() == 1 && polynomial.begin()->second == 1 &&
                       polynomial.begin()->first.size() == 1;
    if (alone) return false;
    return std::any_of(polynomial.begin(), polynomial.end(), [&](auto& term) {
      return std::any_of(term.first.begin(), term.first.end(), [&](Expr atom) {
        if (!atom->has_read && !atom->has_leaf) return false;
        return !atom_nonnegative(atom, kMaxDepth) || !upper_bound(atom, kMaxDepth);
      });
    });
  }

 private:
  // Where an axis has an index, its extent is at least 1.
  void note_axes(Expr expr, int depth) {
    if (depth <= 0 || expr->free_axes.empty()) return;
    if (expr->op == ExprOp::Read || expr->op == ExprOp::Reduce) return;
    if (expr->op == ExprOp::Axis) return note_positive(expr->args[0], depth - 1);
    for (Expr arg : expr->args) note_axes(arg, depth - 1);
  }

  // Consequences of size >= 1: all factors of a product are at least 1, and so is the only positive
  // term of a sum.
  void note_positive(Expr size, int depth) {
    if (depth <= 0) return;
    const Monomial* only = nullptr;
    const Polynomial terms = to_polynomial(size);
    for (auto& [monomial, coefficient] : terms) {
      if (coefficient > 0 && only != nullptr) return;
      if (coefficient > 0) only = &monomial;
      for (Expr atom : monomial) {
        if (!atom_nonnegative(atom, depth)) return;
      }
    }
    if (only == nullptr) return;
    for (Expr atom : *only) note_positive_atom(atom, depth);
  }

  void note_positive_atom(Expr atom, int depth) {
    positive_.push_back(atom);
    if (const Expr x = clamped_at_zero(atom)) return note_positive(x, depth - 1);
    if (atom->op == ExprOp::Min) {
      for (Expr arg : atom->args) note_positive(arg, depth - 1);
    } else if (atom->op == ExprOp::FloorDiv && atom->args[1]->is_constant()) {
      note_positive(atom->args[0], depth - 1);
    }
  }

  bool is_positive(Expr atom, int depth) const {
    if (all_positive_ && (atom->op == ExprOp::Symbol || atom->op == ExprOp::Max)) return true;
    if (std::find(positive_.begin(), positive_.end(), atom) != positive_.end()) return true;
    return atom->op == ExprOp::Min &&
           std::all_of(atom->args.begin(), atom->args.end(), [&](Expr arg) {
             return nonnegative(to_polynomial(arg) + Polynomial{{{}, -1}}, depth - 1);
           });
  }

  bool atom_nonnegative(Expr atom, int depth) const {
    if (depth <= 0) return false;
    switch (atom->op) {
      case ExprOp::Symbol:
      case ExprOp::Axis:
        return true;
      case ExprOp::Abs:  // the smallest integer has no opposite
        return !atom->has_read && !atom->has_leaf;
      case ExprOp::Reduce:
        return is_position(atom);
      default:
        return clamped_at_zero(atom) != nullptr ||
               low_bound(atom->op, Operands{*this, atom, depth});
    }
  }

  // The index of an extremum.
  static bool is_position(Expr atom) {
    if (atom->op != ExprOp::Reduce || atom->dtype != DType::Int64) return false;
    return is_arg(atom->reduction) || (is_ranked(atom->reduction) && atom->integer == 1);
  }

  // An upper bound of the atom, a polynomial of sizes; nullopt if none is known.
  std::optional<Polynomial> upper_bound(Expr atom, int depth) const {
    if (depth <= 0) return std::nullopt;
    const Polynomial minus_one{{{}, -1}};
    switch (atom->op) {
      case ExprOp::Axis: {
        const Expr inner = clamped_at_zero(atom->args[0]);
        return to_polynomial(inner ? inner : atom->args[0]) + minus_one;
      }
      case ExprOp::Reduce:
        if (!is_position(atom)) return std::nullopt;
        return to_polynomial(atom->extent()) + minus_one;
      default:
        return high_bound(atom->op, Operands{*this, atom, depth}).value;
    }
  }

  // The rules of ir/interval.h: lower bounds are 0 or unknown, upper bounds are polynomials.
  struct Operands {
    struct High {
      std::optional<Polynomial> value;
      bool exact = false;
    };

    const Prover& prover;
    Expr atom;
    int depth;

    bool low(size_t i) const { return prover.nonnegative(to_polynomial(atom->args[i]), depth - 1); }
    High high(size_t i) const {
      const Expr arg = atom->args[i];
      if (is_closed(arg)) return {to_polynomial(arg), true};
      return {prover.upper_bound(arg, depth - 1)};
    }
    static bool least(bool x, bool y) { return x && y; }
    static bool greatest(bool x, bool y) { return x || y; }
    static High least(const High& x, const High& y) { return x.exact || !y.exact ? x : y; }
    High greatest(const High& x, const High& y) const {
      if (!x.value || !y.value) return {};
      if (prover.nonnegative(*x.value + scaled(*y.value, -1), depth - 1)) return x;
      return prover.nonnegative(*y.value + scaled(*x.value, -1), depth - 1) ? y : High{};
    }
    static bool zero() { return true; }
    static bool unknown_low() { return false; }
    static High unknown_high() { return {}; }
    bool positive(size_t i) const { return low(i); }  // a divisor is not 0
    bool low_quotient() const { return low(0); }
    High high_quotient() const { return {prover.upper_quotient(atom, depth)}; }
    static High remainder_below(const High& divisor) {
      if (!divisor.value) return {};
      return {*divisor.value + Polynomial{{{}, -1}}};
    }
  };

  std::optional<Polynomial> upper_quotient(Expr atom, int depth) const {
    Polynomial bound;
    for (auto& [monomial, coefficient] : to_polynomial(atom->args[0])) {
      Polynomial term{{{}, coefficient}};
      for (Expr factor : monomial) {
        if (factor->free_axes.empty()) {
          term = term * Polynomial{{{factor}, 1}};
        } else if (coefficient < 0) {
          return std::nullopt;
        } else {
          auto factor_bound = upper_bound(factor, depth - 1);
          if (!factor_bound) return std::nullopt;
          term = term * *factor_bound;
          if (term.size() > kMaxTerms) return std::nullopt;
        }
      }
      bound = std::move(bound) + term;
    }
    // ⌊(q·d + r)/d⌋ <= q when r <= d - 1, which holds for the usual r = -1.
    const Polynomial minus_one{{{}, -1}};
    Division division = divide(bound, to_polynomial(atom->args[1]));
    if (division.remainder.empty()) return division.quotient;
    if (nonnegative(scaled(division.remainder, -1) + minus_one, depth - 1)) {
      return division.quotient + minus_one;
    }
    return nonnegative(bound, depth - 1) ? std::optional(bound) : std::nullopt;
  }

  // A size that is at least 1 is 1 + t with t >= 0, any other t: nonnegative if all coefficients in
  // t are.
  bool all_terms_nonnegative(const Polynomial& polynomial, int depth) const {
    const auto all_nonnegative = [](const Polynomial& terms) {
      return std::all_of(terms.begin(), terms.end(), [](auto& term) { return term.second >= 0; });
    };
    if (all_nonnegative(polynomial)) return true;
    Polynomial shifted;
    for (auto& [monomial, coefficient] : polynomial) {
      Polynomial term{{{}, coefficient}};
      for (Expr atom : monomial) {
        Polynomial factor{{{atom}, 1}};
        if (is_positive(atom, depth)) factor[{}] = 1;
        term = term * factor;
        if (term.size() > kMaxTerms) return false;
      }
      shifted = std::move(shifted) + term;
    }
    return all_nonnegative(shifted);
  }

  // A subtracted minimum is at most each of its operands.
  bool sizes_nonnegative(const Polynomial& polynomial, int depth) const {
    if (depth <= 0) return false;
    if (all_terms_nonnegative(polynomial, depth)) return true;
    for (auto& [monomial, coefficient] : polynomial) {
      if (coefficient > 0) continue;
      const auto least = std::find_if(monomial.begin(), monomial.end(),
                                      [](Expr atom) { return atom->op == ExprOp::Min; });
      if (least == monomial.end()) continue;
      Monomial rest = monomial;
      rest.erase(rest.begin() + (least - monomial.begin()));
      const Polynomial others = polynomial + Polynomial{{monomial, -coefficient}};
      return std::any_of((*least)->args.begin(), (*least)->args.end(), [&](Expr arg) {
        const Polynomial most = Polynomial{{rest, coefficient}} * to_polynomial(arg);
        return sizes_nonnegative(others + most, depth - 1);
      });
    }
    return false;
  }

  bool nonnegative(const Polynomial& polynomial, int depth) const {
    if (depth <= 0) return false;
    Polynomial bound;
    for (auto& [monomial, coefficient] : polynomial) {
      Polynomial term{{{}, coefficient}};
      for (Expr atom : monomial) {
        if (!atom_nonnegative(atom, depth - 1)) return false;
        if (!is_loop_atom(atom)) {
          term = term * Polynomial{{{atom}, 1}};
        } else if (coefficient > 0) {
          term.clear();
        } else {
          auto upper = upper_bound(atom, depth - 1);
          if (!upper) return false;
          term = term * *upper;
          if (term.size() > kMaxTerms) return false;
        }
      }
      bound = std::move(bound) + term;
    }
    return sizes_nonnegative(bound, depth);
  }

  bool all_positive_;
  Monomial positive_;  // atoms
};

}  // namespace

Positive nonzero(Expr divisor) {
  const Polynomial terms = to_polynomial(divisor);
  const bool product = terms.size() == 1 && terms.begin()->second > 0;
  return {false, product ? std::vector<Expr>{divisor} : std::vector<Expr>{}};
}

bool proved_nonnegative(const Polynomial& polynomial, const Positive& positive) {
  if (polynomial.empty()) return true;
  if (polynomial.size() == 1 && polynomial.begin()->first.empty()) {
    return polynomial.begin()->second >= 0;
  }
  return Prover(positive).prove(polynomial);
}

namespace {

// Whether b - a - distance is at least zero.
bool proved_apart(Expr a, Expr b, int64_t distance, const Positive& positive) {
  if (a->is_constant() && b->is_constant()) {
    int64_t gap = 0;
    return !__builtin_sub_overflow(b->integer, a->integer, &gap) && gap >= distance;
  }
  try {
    const Polynomial low = to_polynomial(a), high = to_polynomial(b);
    const Prover prover(positive);
    if (prover.may_wrap(low) || prover.may_wrap(high)) return false;
    return proved_nonnegative(high + scaled(low, -1) + Polynomial{{{}, -distance}}, positive);
  } catch (const CoefficientOverflow&) {
    return false;
  }
}

}  // namespace

bool proved_nonnegative(Expr expr, const Positive& positive) {
  const Polynomial polynomial = to_polynomial(expr);
  return !Prover(positive).may_wrap(polynomial) && proved_nonnegative(polynomial, positive);
}

bool proved_less_equal(ExprPool&, Expr a, Expr b, const Positive& positive) {
  return proved_apart(a, b, 0, positive);
}

bool proved_less(ExprPool&, Expr a, Expr b, const Positive& positive) {
  return proved_apart(a, b, 1, positive);
}

}  // namespace redfuser::ir
