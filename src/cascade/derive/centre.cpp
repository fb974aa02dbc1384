// Replaces Σuv - Σu·Σv/n by the centred Σ(u - ū)(v - v̄), which is equal and does not cancel.
#include "cascade/derive/centre.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "cascade/algebra/terms.h"

namespace redfuser::cascade {
namespace {

// A sum of products of integer powers of atoms, with real coefficients.
using Exponents = std::map<uint32_t, int>;  // atom id -> power
using Rational = std::map<Exponents, double>;
constexpr int kMaxPower = 64;  // of an atom: repeated squares have any power

class Normalizer {
 public:
  explicit Normalizer(std::map<int64_t, Rational> replaced) : replaced_(std::move(replaced)) {}

  std::optional<Rational> normalize(ir::Expr e) {
    const auto known = known_.find(e);
    if (known != known_.end()) return known->second;
    auto result = normal_form(e);
    known_.emplace(e, result);
    return result;
  }

  Rational atom(ir::Expr e) {
    atoms_[e->id] = e;
    return {{{{e->id, 1}}, 1}};
  }

  static std::optional<Rational> times(const std::optional<Rational>& a,
                                       const std::optional<Rational>& b) {
    if (!a || !b || a->size() * b->size() > 64) return std::nullopt;
    Rational result;
    for (auto& [left, x] : *a) {
      for (auto& [right, y] : *b) {
        Exponents exponents = left;
        for (auto& [id, power] : right) {
          const int total = exponents[id] += power;
          if (std::abs(total) > kMaxPower) return std::nullopt;
          if (total == 0) exponents.erase(id);
        }
        result[exponents] += x * y;
      }
    }
    return result;
  }

  ir::Expr rebuild(ir::ExprPool& pool, const Rational& rational, DType dtype) const {
    ir::Expr total = nullptr;
    for (auto& [exponents, coefficient] : rational) {
      ir::Expr term = nullptr, divisor = nullptr;
      for (auto& [id, power] : exponents) {
        for (int i = 0; i < std::abs(power); ++i) {
          ir::Expr& side = power > 0 ? term : divisor;
          ir::Expr factor = pool.cast(dtype, atoms_.at(id));
          side = side ? pool.mul(side, factor) : factor;
        }
      }
      ir::Expr scale = pool.number(coefficient, dtype);
      term = !term ? scale : coefficient == 1 ? term : pool.mul(term, scale);
      if (divisor) term = pool.div(term, divisor);
      total = total ? pool.add(total, term) : term;
    }
    return total ? total : pool.number(0, dtype);
  }

 private:
  std::optional<Rational> normal_form(ir::Expr e) {
    if (e->is_constant() && is_float(e->dtype)) return Rational{{{}, e->number}};
    switch (e->op) {
      case ir::ExprOp::Cast:
        if (is_float(e->dtype) && is_float(e->args[0]->dtype)) return normalize(e->args[0]);
        if (e->args[0]->is_constant()) {
          return Rational{{{}, static_cast<double>(e->args[0]->integer)}};
        }
        return atom(e);
      case ir::ExprOp::Add:
      case ir::ExprOp::Sub:
        return combine(e);
      case ir::ExprOp::Mul:
        return times(normalize(e->args[0]), normalize(e->args[1]));
      case ir::ExprOp::Neg:
        return times(normalize(e->args[0]), Rational{{{}, -1}});
      case ir::ExprOp::Pow:
        if (e->args[1]->is_constant(2)) {
          auto base = normalize(e->args[0]);
          return times(base, base);
        }
        return atom(e);
      case ir::ExprOp::Div:
        return times(normalize(e->args[0]), inverse(normalize(e->args[1])));
      case ir::ExprOp::Reciprocal:
        return inverse(normalize(e->args[0]));
      case ir::ExprOp::Leaf: {
        auto found = replaced_.find(e->integer);
        return e->leaf_kind == ir::LeafKind::Result && found != replaced_.end() ? found->second
                                                                                : atom(e);
      }
      default:
        return atom(e);
    }
  }

  std::optional<Rational> combine(ir::Expr e) {
    auto result = normalize(e->args[0]);
    for (size_t i = 1; i < e->args.size(); ++i) {
      auto next = normalize(e->args[i]);
      if (!result || !next) return std::nullopt;
      for (auto& [exponents, coefficient] : *next) {
        const double term = e->op == ir::ExprOp::Sub ? -coefficient : coefficient;
        const double before = (*result)[exponents];
        const double sum = before + term;
        // Coefficients such as 1/n are rounded to float32 in models.
        const bool cancels = std::abs(sum) <= 1e-6 * std::max(std::abs(before), std::abs(term));
        if (cancels) {
          result->erase(exponents);
        } else {
          (*result)[exponents] = sum;
        }
      }
    }
    return result;
  }

  static std::optional<Rational> inverse(const std::optional<Rational>& a) {
    if (!a || a->size() != 1 || a->begin()->second == 0) return std::nullopt;
    Exponents exponents;
    for (auto& [id, power] : a->begin()->first) exponents[id] = -power;
    return Rational{{exponents, 1 / a->begin()->second}};
  }

  std::map<int64_t, Rational> replaced_;
  std::map<uint32_t, ir::Expr> atoms_;
  std::unordered_map<ir::Expr, std::optional<Rational>> known_;
};

struct SecondMoment {
  size_t stage, first, second;  // Σuv, Σu, Σv
  ir::Expr u, v;
};

std::optional<SecondMoment> find_second_moment(ir::ExprPool& pool, const Cascade& cascade,
                                               size_t i) {
  const Stage& stage = cascade.stages[i];
  const StageScope scope{pool, cascade.stream, cascade.stages, stage.columns};
  if (stage.reduction != ir::Reduction::Sum || scope.results(stage.body)) return std::nullopt;
  ir::Expr body = stage.body;
  while (body->op == ir::ExprOp::Cast) body = body->args[0];
  ir::Expr u = nullptr, v = nullptr;
  if (body->op == ir::ExprOp::Mul && is_float(body->dtype)) {
    u = body->args[0];
    v = body->args[1];
  } else if (body->op == ir::ExprOp::Pow && body->args[1]->is_constant(2)) {
    u = v = body->args[0];
  } else {
    return std::nullopt;
  }
  auto strip = [](ir::Expr e) {
    while (e->op == ir::ExprOp::Cast && is_float(e->dtype) && is_float(e->args[0]->dtype))
      e = e->args[0];
    return e;
  };
  auto plain_sum = [&](ir::Expr of) -> std::optional<size_t> {
    for (size_t k = 0; k < cascade.stages.size(); ++k) {
      const Stage& other = cascade.stages[k];
      if (other.reduction == ir::Reduction::Sum && other.columns == stage.columns &&
          strip(other.body) == strip(of)) {
        return k;
      }
    }
    return std::nullopt;
  };
  auto first = plain_sum(u), second = plain_sum(v);
  if (!first || !second) return std::nullopt;
  return SecondMoment{i, *first, *second, u, v};
}

// Rewrites the outermost polynomial expressions of results in which Σuv and Σu·Σv/n cancel.
class CentringPass {
 public:
  CentringPass(ir::ExprPool& pool, const Cascade& cascade, const SecondMoment& moment)
      : pool_(pool), moment_(moment), stream_(cascade.stream) {
    const DType dtype = state_dtype(cascade.stages[moment.stage].body->dtype);
    auto leaf = [&](size_t k) {
      return pool.leaf(ir::LeafKind::Result, static_cast<int64_t>(k),
                       cascade.stages[k].body->dtype);
    };
    first_ = leaf(moment.first);
    second_ = leaf(moment.second);
    whole_ = leaf(moment.stage);
    // A placeholder of the centred moment until every use is rewritten; cascades have no State
    // leaves.
    centred_ = pool.leaf(ir::LeafKind::State, -2, whole_->dtype);
    count_ = pool.cast(dtype, cascade.stream->extent());
    Normalizer plain({});
    auto products = Normalizer::times(plain.normalize(first_), plain.normalize(second_));
    auto size = plain.normalize(count_);
    Rational substitute = *plain.normalize(centred_);
    Exponents inverse;
    double factor = 1 / size->begin()->second;
    for (auto& [id, power] : size->begin()->first) inverse[id] = -power;
    const auto quotient = Normalizer::times(products, Rational{{inverse, factor}});
    for (auto& [exponents, c] : *quotient) {
      substitute[exponents] += c;
    }
    replaced_[static_cast<int64_t>(moment.stage)] = substitute;
  }

  bool cancelled = false;

  // Uses that do not cancel get Σuv = M + Σu·Σv/n; the centred moment takes the stage's number.
  ir::Expr settle(ir::Expr root) {
    ir::Expr whole = pool_.add(whole_, pool_.div(pool_.mul(first_, second_), count_));
    return pool_.substitute(root, {{whole_, whole}, {centred_, whole_}});
  }

  ir::Expr rewrite(ir::Expr root) {
    return pool_.rewrite(root, [&](ir::Expr e) -> ir::Expr {
      if (!polynomial_node(e) || e->depends_on(stream_) || !uses(e, whole_)) return nullptr;
      if (!uses(e, first_)) return nullptr;
      Normalizer normalizer(replaced_);
      for (ir::Expr leaf : {first_, second_, centred_, count_}) normalizer.atom(leaf);
      auto normal = normalizer.normalize(e);
      if (!normal) return nullptr;
      for (auto& [exponents, c] : *normal) {
        if (exponents.count(first_->id) || exponents.count(second_->id)) return nullptr;
      }
      cancelled = true;
      return normalizer.rebuild(pool_, *normal, e->dtype);
    });
  }

 private:
  static bool polynomial_node(ir::Expr e) {
    return is_float(e->dtype) && (e->op == ir::ExprOp::Add || e->op == ir::ExprOp::Sub);
  }
  static bool uses(ir::Expr e, ir::Expr leaf) {
    bool found = false;
    visit(e, [&](ir::Expr node) { found |= node == leaf; });
    return found;
  }

  ir::ExprPool& pool_;
  const SecondMoment& moment_;
  ir::Expr stream_, first_, second_, whole_, centred_, count_;
  std::map<int64_t, Rational> replaced_;
};

// Moves stage `from` behind the stages it now uses and renumbers results everywhere.
Cascade reordered(ir::ExprPool& pool, Cascade cascade, size_t from, size_t to) {
  if (from >= to) return cascade;
  std::vector<size_t> order;
  for (size_t i = 0; i < cascade.stages.size(); ++i) {
    if (i != from) order.push_back(i);
    if (i == to) order.push_back(from);
  }
  std::vector<int64_t> number(order.size());
  for (size_t i = 0; i < order.size(); ++i) number[order[i]] = static_cast<int64_t>(i);
  auto renumber = [&](ir::Expr root) {
    return pool.rewrite(root, [&](ir::Expr e) -> ir::Expr {
      if (e->op == ir::ExprOp::Leaf && e->leaf_kind == ir::LeafKind::Result) {
        return pool.leaf(ir::LeafKind::Result, number[static_cast<size_t>(e->integer)], e->dtype);
      }
      if (e->op == ir::ExprOp::Read && e->integer < 0) {
        const int64_t code = -e->integer - 2;
        return pool.read(-(2 * number[static_cast<size_t>(code / 2)] + 2 + code % 2), e->dtype,
                         e->args);
      }
      return nullptr;
    });
  };
  Cascade result = cascade;
  for (size_t i = 0; i < order.size(); ++i) {
    result.stages[i] = cascade.stages[order[i]];
    result.stages[i].body = renumber(result.stages[i].body);
  }
  for (CascadeOutput& output : result.outputs) output.body = renumber(output.body);
  return result;
}

}  // namespace

Cascade centre_moments(ir::ExprPool& pool, const Cascade& input) {
  Cascade cascade = input;
  for (size_t i = 0; i < cascade.stages.size(); ++i) {
    auto moment = find_second_moment(pool, cascade, i);
    if (!moment) continue;
    CentringPass pass(pool, cascade, *moment);
    Cascade rewritten = cascade;
    for (Stage& stage : rewritten.stages) stage.body = pass.rewrite(stage.body);
    for (CascadeOutput& output : rewritten.outputs) output.body = pass.rewrite(output.body);
    if (!pass.cancelled) continue;
    for (Stage& stage : rewritten.stages) stage.body = pass.settle(stage.body);
    for (CascadeOutput& output : rewritten.outputs) output.body = pass.settle(output.body);
    const DType dtype = state_dtype(cascade.stages[i].body->dtype);
    ir::Expr count = pool.cast(dtype, cascade.stream->extent());
    auto mean = [&](size_t stage) {
      ir::Expr total = pool.leaf(ir::LeafKind::Result, static_cast<int64_t>(stage),
                                 cascade.stages[stage].body->dtype);
      return pool.div(pool.cast(dtype, total), count);
    };
    ir::Expr left = pool.sub(pool.cast(dtype, moment->u), mean(moment->first));
    ir::Expr right = pool.sub(pool.cast(dtype, moment->v), mean(moment->second));
    rewritten.stages[i].body = pool.mul(left, right);
    cascade = reordered(pool, rewritten, i, std::max(moment->first, moment->second));
  }
  return cascade;
}

}  // namespace redfuser::cascade
