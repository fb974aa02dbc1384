// The translated form: polynomials of streamed values as centred moments.
//
// For F(u, d) polynomial in the streamed values u with weight w, keep M_α = Σ w·Π(u_k - c_k)^α_k
// about the running mean c = Σwu / Σw. Moving the centre by δ = c_old - c_new is the binomial
//     M_α <- Σ_{β<=α} C(α,β)·δ^(α-β)·M_β           (Chan, Golub, LeVeque 1983, any order)
// and the result is Taylor's expansion about c: ΣF = Σ_β M_β/β! · ∂^βF(c, d).
#include "cascade/derive/moments.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <unordered_map>

#include "cascade/algebra/terms.h"

namespace redfuser::cascade {
namespace {

using Powers = std::vector<int>;  // one exponent per atom

struct Moments {
  std::vector<ir::Expr> weights, atoms;
  std::vector<Powers> closure;  // of the terms' powers, downwards; by degree
  std::vector<Powers> needed;   // those of degree two and more
};

class Derivative {
 public:
  Derivative(ir::ExprPool& pool, ir::Expr atom) : pool_(pool), atom_(atom) {}

  // ∂e/∂atom, or null if e is not polynomial in it.
  ir::Expr of(ir::Expr e) {
    const auto known = known_.find(e);
    if (known != known_.end()) return known->second;
    ir::Expr result = derived(e);
    known_.emplace(e, result);
    return result;
  }

 private:
  ir::Expr derived(ir::Expr e);

  ir::ExprPool& pool_;
  ir::Expr atom_;
  std::unordered_map<ir::Expr, ir::Expr> known_;
};

ir::Expr Derivative::derived(ir::Expr e) {
  ir::ExprPool& pool = pool_;
  if (e == atom_) return pool.number(1, e->dtype);
  bool contains = false;
  visit(e, [&](ir::Expr node) { contains |= node == atom_; });
  if (!contains) return pool.number(0, e->dtype);
  auto part = [&](size_t i) { return of(e->args[i]); };
  auto zero = [](ir::Expr x) { return x->is_constant(0); };
  auto times = [&](ir::Expr a, ir::Expr b) {
    if (zero(a)) return a;
    return zero(b) ? b : pool.mul(a, b);
  };
  switch (e->op) {
    case ir::ExprOp::Add:
    case ir::ExprOp::Sub: {
      ir::Expr a = part(0), b = part(1);
      if (!a || !b) return nullptr;
      if (zero(b)) return a;
      if (zero(a)) return e->op == ir::ExprOp::Add ? b : pool.make(ir::ExprOp::Neg, {b});
      return pool.make(e->op, {a, b});
    }
    case ir::ExprOp::Neg: {
      ir::Expr a = part(0);
      return a ? pool.make(ir::ExprOp::Neg, {a}) : nullptr;
    }
    case ir::ExprOp::Mul: {
      ir::Expr a = part(0), b = part(1);
      if (!a || !b) return nullptr;
      ir::Expr left = times(a, e->args[1]), right = times(e->args[0], b);
      if (zero(left)) return right;
      return zero(right) ? left : pool.add(left, right);
    }
    case ir::ExprOp::Div: {
      ir::Expr a = part(0), b = part(1);
      return a && b && zero(b) ? pool.div(a, e->args[1]) : nullptr;
    }
    case ir::ExprOp::Pow: {
      ir::Expr a = part(0);
      if (!a || !e->args[1]->is_constant()) return nullptr;
      const double p = e->args[1]->number;
      if (p != static_cast<int>(p) || p < 1 || p > 4) return nullptr;
      ir::Expr lower = p == 2
                           ? e->args[0]
                           : pool.make(ir::ExprOp::Pow, {e->args[0], pool.number(p - 1, e->dtype)});
      return times(times(pool.number(p, e->dtype), lower), a);
    }
    case ir::ExprOp::Cast: {
      ir::Expr a = part(0);
      return a && is_float(e->dtype) ? pool.cast(e->dtype, a) : nullptr;
    }
    default:
      return nullptr;
  }
}

ir::Expr differentiate(ir::ExprPool& pool, ir::Expr e, ir::Expr atom) {
  return Derivative(pool, atom).of(e);
}

std::optional<Moments> find_moments(const std::vector<Term>& terms) {
  if (terms.size() < 2) return std::nullopt;
  Moments moments;
  for (const Term& term : terms) {
    if (!term.exp_x.empty() || !term.exp_d.empty() || !term.guards.empty()) return std::nullopt;
  }
  moments.weights = terms[0].x;
  for (const Term& term : terms) {
    std::vector<ir::Expr> common, rest = term.x;
    for (ir::Expr w : moments.weights) {
      auto found = std::find(rest.begin(), rest.end(), w);
      if (found == rest.end()) continue;
      common.push_back(w);
      rest.erase(found);
    }
    moments.weights = common;
  }
  // A factor with a higher power in some term is a variable of the polynomial, not a weight.
  const std::vector<ir::Expr> weights = moments.weights;
  std::erase_if(moments.weights, [&](ir::Expr w) {
    return std::any_of(terms.begin(), terms.end(), [&](const Term& term) {
      return std::count(term.x.begin(), term.x.end(), w) >
             std::count(weights.begin(), weights.end(), w);
    });
  });
  std::map<Powers, int> closure;
  std::vector<std::vector<ir::Expr>> factors;
  for (const Term& term : terms) {
    std::vector<ir::Expr> rest = term.x;
    for (ir::Expr w : moments.weights) rest.erase(std::find(rest.begin(), rest.end(), w));
    for (ir::Expr u : rest) {
      if (std::find(moments.atoms.begin(), moments.atoms.end(), u) == moments.atoms.end()) {
        moments.atoms.push_back(u);
      }
    }
    factors.push_back(rest);
  }
  if (moments.atoms.empty() || moments.atoms.size() > 3) return std::nullopt;
  int degree = 0;
  for (const auto& rest : factors) {
    Powers powers;
    for (ir::Expr u : moments.atoms) {
      powers.push_back(static_cast<int>(std::count(rest.begin(), rest.end(), u)));
    }
    degree = std::max(degree, static_cast<int>(rest.size()));
    std::vector<Powers> below{{}};
    for (int power : powers) {
      std::vector<Powers> next;
      for (const Powers& p : below) {
        for (int i = 0; i <= power; ++i) {
          next.push_back(p);
          next.back().push_back(i);
        }
      }
      below = std::move(next);
    }
    for (const Powers& p : below) closure[p] = 1;
  }
  if (degree < 2 || degree > 4) return std::nullopt;
  auto total = [](const Powers& p) { return std::accumulate(p.begin(), p.end(), 0); };
  for (auto& [powers, unused] : closure) moments.closure.push_back(powers);
  std::stable_sort(moments.closure.begin(), moments.closure.end(),
                   [&](auto& a, auto& b) { return total(a) < total(b); });
  for (const Powers& powers : moments.closure) {
    if (total(powers) >= 2) moments.needed.push_back(powers);
  }
  return moments;
}

int64_t binomial(int n, int k) {
  int64_t result = 1;
  for (int i = 0; i < k; ++i) result = result * (n - i) / (i + 1);
  return result;
}

ir::Expr power(ir::ExprPool& pool, ir::Expr base, int exponent, DType dtype) {
  ir::Expr result = nullptr;
  for (int i = 0; i < exponent; ++i) result = result ? pool.mul(result, base) : base;
  return result ? result : pool.number(1, dtype);
}

class MomentBuilder {
 public:
  MomentBuilder(StreamingBuilder& builder, size_t stage, Moments moments)
      : builder_(builder),
        pool_(builder.pool()),
        stage_(stage),
        moments_(std::move(moments)),
        dtype_(state_dtype(builder.cascade().stages[stage].body->dtype)) {}

  bool build() {
    ir::Expr total = total_weight();
    std::vector<int> centres;
    for (ir::Expr u : moments_.atoms) centres.push_back(centre(u, total));
    for (const Powers& powers : moments_.needed) add_moment(powers, centres, total);
    return finish(centres, total);
  }

 private:
  Accumulator blank() const {
    Accumulator accumulator;
    accumulator.stage = static_cast<int>(stage_);
    accumulator.dtype = dtype_;
    accumulator.columns = builder_.cascade().stages[stage_].columns;
    return accumulator;
  }

  ir::Expr weighted(ir::Expr value) {
    std::vector<ir::Expr> factors = moments_.weights;
    if (value) factors.push_back(value);
    return product(pool_, factors, dtype_);
  }

  ir::Expr total_weight() {
    if (moments_.weights.empty()) {
      return pool_.cast(dtype_, pool_.leaf(ir::LeafKind::Count, 0, DType::Int64));
    }
    Accumulator accumulator = blank();
    accumulator.lift = weighted(nullptr);
    return builder_.state(builder_.accumulate(accumulator));
  }

  // The running mean, 0 while the total weight is 0.
  int centre(ir::Expr u, ir::Expr total) {
    Accumulator accumulator = blank();
    accumulator.lift = weighted(u);
    ir::Expr first = builder_.state(builder_.accumulate(accumulator));
    ir::Expr zero = pool_.number(0, dtype_);
    return builder_.refer(
        pool_.select(pool_.make(ir::ExprOp::Equal, {total, zero}), zero, pool_.div(first, total)));
  }

  // M_β as a value: Σw for β = 0, zero for degree one (the mean is the centre).
  ir::Expr moment(const Powers& powers, ir::Expr total) {
    const int degree = std::accumulate(powers.begin(), powers.end(), 0);
    if (degree == 0) return total;
    if (degree == 1) return nullptr;
    return builder_.state(numbers_.at(powers));
  }

  void add_moment(const Powers& powers, const std::vector<int>& centres, ir::Expr total) {
    Accumulator accumulator = blank();
    accumulator.form = Form::Translated;
    ir::Expr deviation = nullptr;
    for (size_t k = 0; k < powers.size(); ++k) {
      ir::Expr shifted = pool_.sub(pool_.cast(dtype_, moments_.atoms[k]),
                                   builder_.new_reference(centres[k], dtype_));
      if (powers[k] == 0) continue;
      ir::Expr factor = power(pool_, shifted, powers[k], dtype_);
      deviation = deviation ? pool_.mul(deviation, factor) : factor;
    }
    accumulator.lift = weighted(deviation);
    const int own = static_cast<int>(builder_.streaming.accumulators.size());
    numbers_[powers] = own;
    accumulator.transport = pool_.leaf(ir::LeafKind::State, own, dtype_);
    for (const Powers& lower : below(powers)) {
      if (lower == powers) continue;
      ir::Expr m = moment(lower, total);
      if (!m) continue;
      int64_t coefficient = 1;
      ir::Expr shift = nullptr;
      for (size_t k = 0; k < powers.size(); ++k) {
        coefficient *= binomial(powers[k], lower[k]);
        if (powers[k] == lower[k]) continue;
        ir::Expr delta = pool_.sub(builder_.old_reference(centres[k], dtype_),
                                   builder_.new_reference(centres[k], dtype_));
        ir::Expr factor = power(pool_, delta, powers[k] - lower[k], dtype_);
        shift = shift ? pool_.mul(shift, factor) : factor;
      }
      ir::Expr moved = pool_.mul(m, shift);
      if (coefficient != 1) moved = pool_.mul(moved, pool_.number_int(coefficient, dtype_));
      accumulator.transport = pool_.add(accumulator.transport, moved);
    }
    for (size_t i = 0; i < builder_.streaming.accumulators.size(); ++i) {
      if (builder_.streaming.accumulators[i].lift == accumulator.lift &&
          builder_.streaming.accumulators[i].form == Form::Translated) {
        numbers_[powers] = static_cast<int>(i);
        return;
      }
    }
    builder_.streaming.accumulators.push_back(std::move(accumulator));
  }

  static std::vector<Powers> below(const Powers& powers) {
    std::vector<Powers> result{{}};
    for (int power : powers) {
      std::vector<Powers> next;
      for (const Powers& p : result) {
        for (int i = 0; i <= power; ++i) {
          next.push_back(p);
          next.back().push_back(i);
        }
      }
      result = std::move(next);
    }
    return result;
  }

  // The variable of atom k, or of weight k, in the polynomial: an atom may contain a weight, or a
  // weight an atom.
  ir::Expr variable(size_t k) {
    return pool_.leaf(ir::LeafKind::State, -2 - static_cast<int64_t>(k), dtype_);
  }
  ir::Expr weight_variable(size_t k) {
    return pool_.leaf(ir::LeafKind::State, -100 - static_cast<int64_t>(k),
                      moments_.weights[k]->dtype);
  }

  // The variable of `e` in the polynomial; null if `e` is neither an atom nor a weight. Centres are
  // not rounded to the atom's type: if the body reads an atom in a wider type, the variable has
  // that type.
  ir::Expr variable_for(ir::Expr e) {
    for (size_t k = 0; k < moments_.weights.size(); ++k) {
      if (e == moments_.weights[k]) return weight_variable(k);
    }
    ir::Expr plain = e;
    while (plain->op == ir::ExprOp::Cast && is_float(plain->dtype)) plain = plain->args[0];
    for (size_t k = 0; k < moments_.atoms.size(); ++k) {
      if (plain == moments_.atoms[k]) return pool_.cast(e->dtype, variable(k));
    }
    return nullptr;
  }

  // The body over the variables, with weights 1; null if it is not a polynomial in all of them.
  ir::Expr polynomial() {
    std::vector<std::pair<ir::Expr, ir::Expr>> ones;
    for (size_t k = 0; k < moments_.weights.size(); ++k) {
      ones.emplace_back(weight_variable(k), pool_.number(1, moments_.weights[k]->dtype));
    }
    ir::Expr body = pool_.rewrite(builder_.cascade().stages[stage_].body,
                                  [this](ir::Expr e) { return variable_for(e); });
    if (builder_.scope(stage_).streamed(body)) return nullptr;
    for (auto& [weight, one] : ones) {
      if (!differentiate(pool_, body, weight)) return nullptr;
    }
    return pool_.substitute(body, ones);
  }

  // ∂^β of the body for every β of the closure, if all others are zero: Taylor's expansion ends.
  std::optional<std::map<Powers, ir::Expr>> derivatives() {
    ir::Expr body = polynomial();
    if (!body) return std::nullopt;
    std::map<Powers, ir::Expr> result{{Powers(moments_.atoms.size(), 0), body}};
    for (const Powers& powers : moments_.closure) {
      for (size_t k = 0; k < powers.size(); ++k) {
        Powers next = powers;
        ++next[k];
        ir::Expr derivative = differentiate(pool_, result.at(powers), variable(k));
        if (!derivative) return std::nullopt;
        const bool expected = std::find(moments_.closure.begin(), moments_.closure.end(), next) !=
                              moments_.closure.end();
        if (!expected && !derivative->is_constant(0)) return std::nullopt;
        if (expected) result.emplace(next, derivative);
      }
    }
    return result;
  }

  bool finish(const std::vector<int>& centres, ir::Expr total) {
    const auto partial = derivatives();
    if (!partial) return false;
    std::vector<std::pair<ir::Expr, ir::Expr>> at_centre;
    for (size_t k = 0; k < centres.size(); ++k) {
      const Reference& centre = builder_.streaming.references[static_cast<size_t>(centres[k])];
      at_centre.emplace_back(variable(k), pool_.cast(dtype_, centre.value));
    }
    auto centred = [&](const Powers& powers) {
      return pool_.cast(dtype_, pool_.substitute(partial->at(powers), at_centre));
    };
    ir::Expr value = pool_.mul(total, centred(Powers(centres.size(), 0)));
    for (const Powers& powers : moments_.needed) {
      if (partial->at(powers)->is_constant(0)) continue;
      double factorial = 1;
      for (int power : powers) factorial *= std::tgamma(power + 1);
      ir::Expr weight = pool_.mul(centred(powers), pool_.number(1 / factorial, dtype_));
      value = pool_.add(value, pool_.mul(builder_.state(numbers_.at(powers)), weight));
    }
    builder_.finish(stage_, value, Form::Translated);
    StageReport& report = builder_.reports.back();
    report.G = "centred moments of " + builder_.text(moments_.atoms[0]);
    report.H = builder_.text(value);
    report.rho = "binomial shift of the centre";
    return true;
  }

  StreamingBuilder& builder_;
  ir::ExprPool& pool_;
  size_t stage_;
  Moments moments_;
  DType dtype_;
  std::map<Powers, int> numbers_;
};

}  // namespace

bool derive_moments(StreamingBuilder& builder, size_t stage, const std::vector<Term>& terms) {
  auto moments = find_moments(terms);
  if (!moments) return false;
  const auto accumulators = builder.streaming.accumulators;
  const auto references = builder.streaming.references;
  if (MomentBuilder(builder, stage, std::move(*moments)).build()) return true;
  builder.streaming.accumulators = accumulators;
  builder.streaming.references = references;
  return false;
}

}  // namespace redfuser::cascade
