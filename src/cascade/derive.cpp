#include "cascade/derive.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "cascade/builder.h"
#include "cascade/refute.h"
#include "cascade/sign.h"

namespace redfuser {

StreamingBuilder::StreamingBuilder(ExprPool& pool, const Cascade& cascade)
    : pool_(pool), cascade_(cascade) {
  streaming.rows = cascade.rows;
  streaming.stream = cascade.stream;
  streaming.stages = cascade.stages;
  streaming.outputs = cascade.outputs;
}

StageScope StreamingBuilder::scope(size_t stage) const {
  return {pool_, cascade_.stream, cascade_.stages, cascade_.stages[stage].columns};
}

int StreamingBuilder::accumulate(Accumulator accumulator) {
  for (size_t i = 0; i < streaming.accumulators.size(); ++i) {
    const Accumulator& other = streaming.accumulators[i];
    if (other.reduction == accumulator.reduction && other.lift == accumulator.lift &&
        other.transport == accumulator.transport && other.columns == accumulator.columns &&
        other.k == accumulator.k && other.dtype == accumulator.dtype) {
      return static_cast<int>(i);
    }
  }
  streaming.accumulators.push_back(std::move(accumulator));
  return static_cast<int>(streaming.accumulators.size() - 1);
}

Expr StreamingBuilder::state(int accumulator) const {
  const Accumulator& a = streaming.accumulators[static_cast<size_t>(accumulator)];
  const bool index = a.reduction == Reduction::ArgMax || a.reduction == Reduction::ArgMin;
  return pool_.leaf(LeafKind::State, accumulator, index ? DType::Int64 : a.dtype);
}

Expr StreamingBuilder::running(Expr over_results) {
  return pool_.rewrite(over_results, [&](Expr e) -> Expr {
    if (e->op != ExprOp::Leaf || e->leaf_kind != LeafKind::Result) return nullptr;
    return pool_.cast(e->dtype, running(streaming.finish[static_cast<size_t>(e->integer)]));
  });
}

int StreamingBuilder::refer(Expr value) {
  value = running(value);
  for (size_t i = 0; i < streaming.references.size(); ++i) {
    if (streaming.references[i].value == value) return static_cast<int>(i);
  }
  Reference reference{value, 0};
  visit(value, [&](Expr e) {
    if (e->op == ExprOp::Leaf && e->leaf_kind == LeafKind::State) {
      reference.ready_after = std::max(reference.ready_after, static_cast<int>(e->integer) + 1);
    }
  });
  streaming.references.push_back(reference);
  return static_cast<int>(streaming.references.size() - 1);
}

Expr StreamingBuilder::old_reference(int reference, DType dtype) {
  return pool_.leaf(LeafKind::OldResult, reference, dtype);
}
Expr StreamingBuilder::new_reference(int reference, DType dtype) {
  return pool_.leaf(LeafKind::NewResult, reference, dtype);
}

void StreamingBuilder::finish(size_t stage, Expr value, Form form) {
  RF_CHECK(streaming.finish.size() == stage, "stages are derived in order");
  streaming.finish.push_back(value);
  const Stage& s = cascade_.stages[stage];
  StageReport& report = reports.emplace_back();
  report.reduce = name_of(s.reduction);
  report.form = name_of(form);
  report.F = to_string(pool_, s.body);
}

std::variant<Derivation, StageRefusal> derive(ExprPool& pool, const Cascade& input) {
  const Cascade cascade = centre_moments(pool, input);
  StreamingBuilder builder(pool, cascade);
  for (size_t i = 0; i < cascade.stages.size(); ++i) {
    std::optional<Refusal> refusal;
    switch (cascade.stages[i].reduction) {
      case Reduction::Sum:
        refusal = derive_sum(builder, i);
        break;
      case Reduction::Prod:
        refusal = derive_product(builder, i);
        break;
      default:
        refusal = derive_extremum(builder, i);
    }
    if (refusal) return StageRefusal{i, *refusal};
  }
  return Derivation{std::move(builder.streaming), std::move(builder.reports)};
}

namespace {

bool is_extremum(Reduction reduction) {
  return reduction == Reduction::Max || reduction == Reduction::Min;
}

// All results in `e` are running maxima or minima, which are safe to rescale by.
bool only_extrema(const StreamingBuilder& builder, Expr e) {
  bool any = false, all = true;
  visit(e, [&](Expr leaf) {
    if (leaf->op != ExprOp::Leaf) return;
    any = true;
    all &= leaf->leaf_kind == LeafKind::Result &&
           is_extremum(builder.cascade().stages[static_cast<size_t>(leaf->integer)].reduction);
  });
  return any && all;
}

bool is_running_maximum(const StreamingBuilder& builder, Expr reference) {
  return reference->op == ExprOp::Leaf && reference->leaf_kind == LeafKind::State &&
         builder.streaming.accumulators[static_cast<size_t>(reference->integer)].reduction ==
             Reduction::Max;
}

// The running maximum of the exponent's streamed part, where an earlier stage keeps it; else null.
Expr running_top(const StreamingBuilder& builder, const Term& term, DType dtype) {
  if (term.exp_x.empty()) return nullptr;
  Expr exponent = sum(builder.pool(), term.exp_x, dtype);
  const auto& accumulators = builder.streaming.accumulators;
  for (size_t i = 0; i < accumulators.size(); ++i) {
    if (accumulators[i].reduction == Reduction::Max && accumulators[i].lift == exponent) {
      return builder.state(static_cast<int>(i));
    }
  }
  return nullptr;
}

struct TermForm {
  Form form = Form::Plain;
  Expr finish = nullptr;
  std::string G, H, rho;
};

// A rescaled term's exponent reference c, with exp(b) = exp(-c).
Expr rescaling_reference(StreamingBuilder& builder, const Term& term, std::vector<Expr>& deferred,
                         DType dtype) {
  ExprPool& pool = builder.pool();
  std::vector<Expr> pieces;
  for (Expr piece : term.exp_d) {
    if (only_extrema(builder, piece)) {
      pieces.push_back(pool.make(ExprOp::Neg, {pool.cast(dtype, piece)}));
    } else {
      deferred.push_back(piece);
    }
  }
  return pieces.empty() ? nullptr : sum(pool, pieces, dtype);
}

Expr lift_of(StreamingBuilder& builder, size_t stage, const Term& term, Expr safe, DType dtype) {
  ExprPool& pool = builder.pool();
  std::vector<Expr> tile, with_columns;
  for (Expr x : term.x) {
    const auto& columns = builder.cascade().stages[stage].columns;
    const bool in_columns =
        std::any_of(columns.begin(), columns.end(), [&](Expr c) { return x->depends_on(c); });
    (in_columns ? with_columns : tile).push_back(x);
  }
  if (!term.exp_x.empty()) {
    Expr exponent = sum(pool, term.exp_x, dtype);
    if (safe) exponent = pool.sub(exponent, safe);
    tile.push_back(pool.make(ExprOp::Exp, {exponent}));
  } else if (safe) {
    tile.push_back(pool.make(ExprOp::Exp, {pool.make(ExprOp::Neg, {safe})}));
  }
  if (with_columns.empty()) return product(pool, tile, dtype);
  if (tile.empty()) return product(pool, with_columns, dtype);
  return pool.mul(product(pool, tile, dtype), product(pool, with_columns, dtype));
}

// One term of a sum: A ⊕= lift, repaired by ρ = exp(c_old - c_new) where it is rescaled.
TermForm derive_term(StreamingBuilder& builder, size_t stage, const Term& term, DType dtype) {
  ExprPool& pool = builder.pool();
  const double infinity = std::numeric_limits<double>::infinity();
  TermForm result;
  std::vector<Expr> deferred_exponents;
  Expr c = rescaling_reference(builder, term, deferred_exponents, dtype);
  Accumulator accumulator;
  accumulator.stage = static_cast<int>(stage);
  accumulator.columns = builder.cascade().stages[stage].columns;
  accumulator.dtype = dtype;
  Expr value = nullptr;
  if (term.x.empty() && term.exp_x.empty()) {
    value = pool.cast(dtype, pool.leaf(LeafKind::Count, 0, DType::Int64));
    deferred_exponents = term.exp_d;
    result.form = term.uses_results() ? Form::Deferred : Form::Plain;
    result.G = "1";
  } else if (c) {
    // The reference is c, or where c is more than a maximum (m + max(x - m), a stand-in for an
    // infinite m) the maximum itself, and exp(m - c) is owed at the end. A reference of -inf is the
    // identity of the maximum: nothing but exp(-inf) = 0 has been added, so any finite stand-in
    // serves, and where it is c the factor exp(+inf) is owed (0·inf = NaN, as in the graph).
    const bool maximum = is_running_maximum(builder, builder.running(c));
    Expr top = maximum ? nullptr : running_top(builder, term, dtype);
    const int reference = builder.refer(top ? top : c);
    Expr now = builder.new_reference(reference, dtype);
    Expr before = builder.old_reference(reference, dtype);
    auto empty = [&](Expr at) { return pool.make(ExprOp::IsNegInf, {at}); };
    auto finite = [&](Expr at) {
      Expr infinite =
          top ? pool.make(ExprOp::Or, {empty(at), pool.make(ExprOp::IsPosInf, {at})}) : empty(at);
      return pool.select(infinite, pool.number(0, dtype), at);
    };
    Expr moved = top ? pool.sub(finite(before), finite(now)) : pool.sub(before, now);
    Expr rho = pool.select(empty(before), pool.number(1, dtype), pool.make(ExprOp::Exp, {moved}));
    accumulator.form = result.form = Form::Rescaled;
    accumulator.lift = lift_of(builder, stage, term, finite(now), dtype);
    const auto own = static_cast<int64_t>(builder.streaming.accumulators.size());
    Expr before_move = pool.leaf(LeafKind::State, own, dtype);
    accumulator.transport = pool.mul(before_move, rho);
    if (!maximum && !top) {
      // A stand-in hides the identity (c = 0 for an empty row): what is exactly 0 stays 0.
      accumulator.transport =
          pool.select(pool.make(ExprOp::Equal, {before_move, pool.number(0, dtype)}), before_move,
                      accumulator.transport);
    }
    // Equal accumulators differ only in the number of their own State leaf.
    int number = -1;
    for (size_t i = 0; i < builder.streaming.accumulators.size(); ++i) {
      const Accumulator& other = builder.streaming.accumulators[i];
      if (other.lift == accumulator.lift && other.columns == accumulator.columns &&
          other.reduction == Reduction::Sum && other.form == Form::Rescaled) {
        number = static_cast<int>(i);
      }
    }
    if (number < 0) number = builder.accumulate(accumulator);
    Expr owed = top ? pool.make(ExprOp::Exp, {pool.sub(finite(top), c)})
                    : pool.select(empty(builder.running(c)), pool.number(infinity, dtype),
                                  pool.number(1, dtype));
    value = pool.mul(builder.state(number), owed);
    result.G = to_string(pool, lift_of(builder, stage, term, nullptr, dtype));
    result.rho = to_string(pool, pool.make(ExprOp::Exp, {pool.sub(before, now)}));
  } else {
    result.form = term.uses_results() ? Form::Deferred : Form::Plain;
    accumulator.form = Form::Plain;
    accumulator.lift = lift_of(builder, stage, term, nullptr, dtype);
    value = builder.state(builder.accumulate(accumulator));
    result.G = to_string(pool, accumulator.lift);
  }
  if (term.coefficient != 1) value = pool.mul(value, pool.number(term.coefficient, dtype));
  if (!term.d.empty()) value = pool.mul(value, product(pool, term.d, dtype));
  if (!term.d_inverse.empty()) value = pool.div(value, product(pool, term.d_inverse, dtype));
  if (!deferred_exponents.empty()) {
    value = pool.mul(value, pool.make(ExprOp::Exp, {sum(pool, deferred_exponents, dtype)}));
  }
  for (Expr guard : term.guards) value = pool.select(guard, value, pool.number(0, dtype));
  Expr H = product(pool, term.d, dtype);
  if (!term.d_inverse.empty()) H = pool.div(H, product(pool, term.d_inverse, dtype));
  if (!term.exp_d.empty()) H = pool.mul(H, pool.make(ExprOp::Exp, {sum(pool, term.exp_d, dtype)}));
  result.H = to_string(pool, H);
  result.finish = value;
  return result;
}

}  // namespace

// Adds the evidence of numbers where they show that the body does not separate.
Refusal confirmed(const StageScope& scope, Expr body, Refusal refusal) {
  constexpr int kPoints = 8;
  if (sampled_rank(scope, body, kPoints) == kPoints) {
    refusal.reason += fmt::format(" (its rank is at least {} at random points)", kPoints);
  }
  return refusal;
}

std::optional<Refusal> derive_sum(StreamingBuilder& builder, size_t stage) {
  ExprPool& pool = builder.pool();
  const Stage& s = builder.cascade().stages[stage];
  const DType dtype = state_dtype(s.body->dtype);
  const StageScope scope = builder.scope(stage);
  if (!scope.results(s.body)) {
    Accumulator accumulator;
    accumulator.stage = static_cast<int>(stage);
    accumulator.columns = s.columns;
    accumulator.dtype = dtype;
    accumulator.lift = pool.cast(dtype, s.body);
    builder.finish(stage, builder.state(builder.accumulate(accumulator)), Form::Plain);
    builder.reports.back().G = builder.reports.back().F;
    return std::nullopt;
  }
  auto decomposed = decompose(scope, s.body);
  if (auto* refusal = std::get_if<Refusal>(&decomposed)) return confirmed(scope, s.body, *refusal);
  const auto& terms = std::get<std::vector<Term>>(decomposed);
  if (derive_moments(builder, stage, terms)) return std::nullopt;
  builder.streaming.exact_infinities &= terms.size() <= 1;
  Expr value = nullptr;
  Form form = Form::Plain;
  std::string G, H, rho;
  for (const Term& term : terms) {
    TermForm part = derive_term(builder, stage, term, dtype);
    value = value ? pool.add(value, part.finish) : part.finish;
    form = std::max(form, part.form);
    G += (G.empty() ? "" : "; ") + part.G;
    H += (H.empty() ? "" : "; ") + part.H;
    if (!part.rho.empty()) rho = part.rho;
  }
  builder.finish(stage, value ? value : pool.number(0, dtype), form);
  builder.reports.back().G = G;
  builder.reports.back().H = H;
  builder.reports.back().rho = rho;
  return std::nullopt;
}

// Π x·d = (Πx)·dⁿ, and Π x^d = (Πx)^d.
std::optional<Refusal> derive_product(StreamingBuilder& builder, size_t stage) {
  ExprPool& pool = builder.pool();
  const Stage& s = builder.cascade().stages[stage];
  const DType dtype = state_dtype(s.body->dtype);
  const StageScope scope = builder.scope(stage);
  Accumulator accumulator;
  accumulator.reduction = Reduction::Prod;
  accumulator.stage = static_cast<int>(stage);
  accumulator.columns = s.columns;
  accumulator.dtype = dtype;
  if (!scope.results(s.body)) {
    accumulator.lift = pool.cast(dtype, s.body);
    builder.finish(stage, builder.state(builder.accumulate(accumulator)), Form::Plain);
    return std::nullopt;
  }
  Expr body = s.body;
  if (body->op == ExprOp::Pow && scope.streamed(body->args[0]) && !scope.results(body->args[0]) &&
      !scope.streamed(body->args[1])) {
    accumulator.lift = pool.cast(dtype, body->args[0]);
    Expr base = builder.state(builder.accumulate(accumulator));
    builder.finish(stage, pool.make(ExprOp::Pow, {base, pool.cast(dtype, body->args[1])}),
                   Form::Deferred);
    return std::nullopt;
  }
  auto decomposed = decompose(scope, body);
  if (auto* refusal = std::get_if<Refusal>(&decomposed)) return *refusal;
  auto& terms = std::get<std::vector<Term>>(decomposed);
  if (terms.size() != 1 || !terms[0].guards.empty()) {
    return Refusal{"a product of sums that mix the streamed element with earlier results: " +
                       to_string(pool, body),
                   body};
  }
  Term& term = terms[0];
  Expr h = pool.mul(product(pool, term.d, dtype), pool.number(term.coefficient, dtype));
  if (!term.d_inverse.empty()) h = pool.div(h, product(pool, term.d_inverse, dtype));
  if (!term.exp_d.empty()) h = pool.mul(h, pool.make(ExprOp::Exp, {sum(pool, term.exp_d, dtype)}));
  accumulator.lift = lift_of(builder, stage, term, nullptr, dtype);
  Expr count = pool.cast(dtype, pool.leaf(LeafKind::Count, 0, DType::Int64));
  Expr value =
      pool.mul(builder.state(builder.accumulate(accumulator)), pool.make(ExprOp::Pow, {h, count}));
  builder.finish(stage, value, Form::Deferred);
  return std::nullopt;
}

namespace {

Reduction opposite(Reduction reduction) {
  switch (reduction) {
    case Reduction::Max:
      return Reduction::Min;
    case Reduction::Min:
      return Reduction::Max;
    case Reduction::ArgMax:
      return Reduction::ArgMin;
    case Reduction::ArgMin:
      return Reduction::ArgMax;
    case Reduction::TopK:
      return Reduction::BottomK;
    default:
      return Reduction::TopK;
  }
}

struct Extremum {
  Expr u = nullptr, phi = nullptr;  // phi over State leaf 0, replaced by the caller
  bool increasing = true;
};

// x·d with the sign of d proved, or x + d, after expansion.
std::variant<Extremum, Refusal> separate_extremum(const StageScope& scope, Expr body, DType dtype) {
  ExprPool& pool = scope.pool;
  Expr slot = pool.leaf(LeafKind::State, -1, dtype);
  if (auto direct = monotone(scope, body)) {
    return Extremum{direct->u,
                    pool.substitute(body, {{direct->u, pool.cast(direct->u->dtype, slot)}}),
                    direct->increasing};
  }
  auto decomposed = decompose(scope, body);
  if (auto* refusal = std::get_if<Refusal>(&decomposed)) return *refusal;
  auto& terms = std::get<std::vector<Term>>(decomposed);
  auto factor = [&](const Term& term) {
    Expr d = pool.mul(product(pool, term.d, dtype), pool.number(term.coefficient, dtype));
    if (!term.d_inverse.empty()) d = pool.div(d, product(pool, term.d_inverse, dtype));
    if (!term.exp_d.empty())
      d = pool.mul(d, pool.make(ExprOp::Exp, {sum(pool, term.exp_d, dtype)}));
    return d;
  };
  auto streamed = [&](const Term& term) {
    Expr x = product(pool, term.x, dtype);
    if (term.exp_x.empty()) return x;
    return pool.mul(x, pool.make(ExprOp::Exp, {sum(pool, term.exp_x, dtype)}));
  };
  for (const Term& term : terms) {
    if (!term.guards.empty()) return Refusal{"a maximum of a guarded value", body};
  }
  if (terms.size() == 1) {
    Expr d = factor(terms[0]);
    const Sign sign = sign_of(scope, d);
    if (sign == Sign::Unknown) {
      return Refusal{"the sign of " + to_string(pool, d) +
                         ", which multiplies the streamed element under a maximum, is not proved",
                     body};
    }
    return Extremum{streamed(terms[0]), pool.mul(slot, d), sign != Sign::Negative};
  }
  std::vector<Expr> x, d;
  for (const Term& term : terms) {
    const bool pure_x = !term.uses_results();
    const bool pure_d = term.x.empty() && term.exp_x.empty();
    if (!pure_x && !pure_d) {
      return Refusal{
          "a maximum of a sum in which an earlier result multiplies the streamed "
          "element: " +
              to_string(pool, body),
          body};
    }
    if (pure_d) {
      d.push_back(factor(term));
    } else {
      x.push_back(pool.mul(streamed(term), factor(term)));
    }
  }
  return Extremum{sum(pool, x, dtype), pool.add(slot, sum(pool, d, dtype)), true};
}

}  // namespace

// max_l φ_d(u_l) = φ_d(max_l u_l) for φ increasing, φ_d(min_l u_l) for φ decreasing.
std::optional<Refusal> derive_extremum(StreamingBuilder& builder, size_t stage) {
  ExprPool& pool = builder.pool();
  const Stage& s = builder.cascade().stages[stage];
  const DType dtype = state_dtype(s.body->dtype);
  const StageScope scope = builder.scope(stage);
  Accumulator accumulator;
  accumulator.reduction = s.reduction;
  accumulator.stage = static_cast<int>(stage);
  accumulator.columns = s.columns;
  accumulator.k = s.k;
  accumulator.dtype = dtype;
  if (!scope.results(s.body)) {
    accumulator.lift = pool.cast(dtype, s.body);
    builder.finish(stage, builder.state(builder.accumulate(accumulator)), Form::Plain);
    builder.reports.back().G = builder.reports.back().F;
    return std::nullopt;
  }
  auto separated = separate_extremum(scope, s.body, dtype);
  if (auto* refusal = std::get_if<Refusal>(&separated)) return *refusal;
  const auto& extremum = std::get<Extremum>(separated);
  accumulator.lift = pool.cast(dtype, extremum.u);
  if (!extremum.increasing) accumulator.reduction = opposite(s.reduction);
  const int number = builder.accumulate(accumulator);
  Expr slot = pool.leaf(LeafKind::State, -1, dtype);
  auto phi = [&](Expr value) { return pool.substitute(extremum.phi, {{slot, value}}); };
  const bool ranked = s.reduction == Reduction::TopK || s.reduction == Reduction::BottomK;
  const bool value = s.reduction == Reduction::Max || s.reduction == Reduction::Min;
  builder.finish(stage, value ? phi(builder.state(number)) : builder.state(number), Form::Deferred);
  builder.reports.back().G = to_string(pool, extremum.u);
  builder.reports.back().H = to_string(pool, extremum.phi);
  if (ranked) {
    // Ranked values are read through their rank; φ is applied where they are read.
    const int64_t read = -(2 * static_cast<int64_t>(stage) + 2);
    for (CascadeOutput& output : builder.streaming.outputs) {
      output.body = pool.rewrite(output.body, [&](Expr e) -> Expr {
        return e->op == ExprOp::Read && e->integer == read ? phi(e) : nullptr;
      });
    }
  }
  return std::nullopt;
}

}  // namespace redfuser
