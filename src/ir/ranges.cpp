// Proofs about integer expressions from the ranges of axes and sizes.
#include <algorithm>

#include "ir/polynomial.h"

namespace redfuser {
namespace {

constexpr int kMaxDepth = 6;
// Products of many sums have a number of terms that is exponential in them: beyond this many,
// nothing is proved.
constexpr size_t kMaxTerms = 1024;
bool nonnegative(const Polynomial& polynomial, int depth);

bool atom_nonnegative(Expr atom, int depth) {
  if (depth <= 0) return false;
  auto arg_nonnegative = [&](int i) {
    return nonnegative(to_polynomial(atom->args[i]), depth - 1);
  };
  switch (atom->op) {
    case ExprOp::Symbol:
    case ExprOp::Axis:
      return true;
    case ExprOp::FloorMod:
      return arg_nonnegative(1);
    case ExprOp::FloorDiv:
      return arg_nonnegative(0) && arg_nonnegative(1);
    case ExprOp::Min:
      return arg_nonnegative(0) && arg_nonnegative(1);
    case ExprOp::Max:
      return arg_nonnegative(0) || arg_nonnegative(1);
    case ExprOp::Select:
      return arg_nonnegative(1) && arg_nonnegative(2);
    case ExprOp::Abs:  // the smallest integer has no opposite
      return !atom->has_read && !atom->has_leaf;
    default:
      return false;
  }
}

bool is_closed(Expr expr) { return expr->free_axes.empty() && !expr->has_read; }

// A polynomial that the atom never exceeds, in terms of sizes; nullopt if none is known.
std::optional<Polynomial> upper_bound(Expr atom, int depth) {
  if (depth <= 0) return std::nullopt;
  const Polynomial minus_one{{{}, -1}};
  switch (atom->op) {
    case ExprOp::Axis:
      return to_polynomial(atom->args[0]) + minus_one;
    case ExprOp::FloorMod:
      if (!atom->args[1]->free_axes.empty()) return std::nullopt;
      return to_polynomial(atom->args[1]) + minus_one;
    case ExprOp::FloorDiv: {
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
        bound = bound + term;
      }
      // ⌊(q·d + r)/d⌋ <= q when r <= d - 1, which holds for the usual r = -1.
      Division division = divide(bound, to_polynomial(atom->args[1]));
      if (division.remainder.empty()) return division.quotient;
      if (nonnegative(scaled(division.remainder, -1) + minus_one, depth - 1)) {
        return division.quotient + minus_one;
      }
      return nonnegative(bound, depth - 1) ? std::optional(bound) : std::nullopt;
    }
    case ExprOp::Min: {
      for (Expr arg : atom->args) {
        if (is_closed(arg)) return to_polynomial(arg);
      }
      return upper_bound(atom->args[0], depth - 1);
    }
    case ExprOp::Max: {
      const auto bound = [&](Expr arg) {
        return is_closed(arg) ? to_polynomial(arg) : upper_bound(arg, depth - 1);
      };
      const auto a = bound(atom->args[0]), b = bound(atom->args[1]);
      if (!a || !b) return std::nullopt;
      if (nonnegative(*a + scaled(*b, -1), depth - 1)) return a;
      return nonnegative(*b + scaled(*a, -1), depth - 1) ? b : std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

// Every size is 1 + t with t >= 0: nonnegative if all coefficients in t are.
bool sizes_nonnegative(const Polynomial& polynomial) {
  const auto all_nonnegative = [](const Polynomial& terms) {
    return std::all_of(terms.begin(), terms.end(), [](auto& term) { return term.second >= 0; });
  };
  if (all_nonnegative(polynomial)) return true;
  Polynomial shifted;
  for (auto& [monomial, coefficient] : polynomial) {
    Polynomial term{{{}, coefficient}};
    for (Expr atom : monomial) {
      Polynomial factor{{{atom}, 1}};
      if (atom->op == ExprOp::Symbol || atom->op == ExprOp::Max) factor[{}] = 1;
      term = term * factor;
      if (term.size() > kMaxTerms) return false;
    }
    shifted = shifted + term;
  }
  return all_nonnegative(shifted);
}

bool is_loop_atom(Expr atom) { return !atom->free_axes.empty() || atom->has_read; }

bool nonnegative(const Polynomial& polynomial, int depth) {
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
        break;
      } else {
        auto upper = upper_bound(atom, depth - 1);
        if (!upper) return false;
        term = term * *upper;
        if (term.size() > kMaxTerms) return false;
      }
    }
    bound = bound + term;
  }
  return sizes_nonnegative(bound);
}

}  // namespace

bool proved_nonnegative(const Polynomial& polynomial) {
  if (polynomial.empty()) return true;
  if (polynomial.size() == 1 && polynomial.begin()->first.empty()) {
    return polynomial.begin()->second >= 0;
  }
  return nonnegative(polynomial, kMaxDepth);
}

namespace {

// A sum or product with an element of unknown size.
bool may_wrap(const Polynomial& polynomial) {
  const bool alone = polynomial.size() == 1 && polynomial.begin()->second == 1 &&
                     polynomial.begin()->first.size() == 1;
  if (alone) return false;
  return std::any_of(polynomial.begin(), polynomial.end(), [](auto& term) {
    return std::any_of(term.first.begin(), term.first.end(), [](Expr atom) {
      if (!atom->has_read && !atom->has_leaf) return false;
      return !atom_nonnegative(atom, kMaxDepth) || !upper_bound(atom, kMaxDepth);
    });
  });
}

// Whether b - a - distance is at least zero.
bool proved_apart(Expr a, Expr b, int64_t distance) {
  try {
    const Polynomial low = to_polynomial(a), high = to_polynomial(b);
    if (may_wrap(low) || may_wrap(high)) return false;
    return proved_nonnegative(high + scaled(low, -1) + Polynomial{{{}, -distance}});
  } catch (const CoefficientOverflow&) {
    return false;
  }
}

}  // namespace

bool proved_nonnegative(Expr expr) {
  const Polynomial polynomial = to_polynomial(expr);
  return !may_wrap(polynomial) && proved_nonnegative(polynomial);
}

bool proved_less_equal(ExprPool&, Expr a, Expr b) { return proved_apart(a, b, 0); }

bool proved_less(ExprPool&, Expr a, Expr b) { return proved_apart(a, b, 1); }

}  // namespace redfuser
