// Products and extrema.
#include "cascade/derive/derive_extremum.h"

#include <algorithm>

#include "cascade/algebra/sign.h"
#include "cascade/algebra/terms.h"
#include "cascade/derive/derive_sum.h"

namespace redfuser::cascade {

// Π x·d = (Πx)·dⁿ, and Π x^d = (Πx)^d.
std::optional<Refusal> derive_product(StreamingBuilder& builder, size_t stage) {
  ir::ExprPool& pool = builder.pool();
  const Stage& s = builder.cascade().stages[stage];
  const DType dtype = state_dtype(s.body->dtype);
  const StageScope scope = builder.scope(stage);
  Accumulator accumulator;
  accumulator.reduction = ir::Reduction::Prod;
  accumulator.stage = static_cast<int>(stage);
  accumulator.columns = s.columns;
  accumulator.dtype = dtype;
  if (!scope.results(s.body)) {
    accumulator.lift = pool.cast(dtype, s.body);
    builder.finish(stage, builder.state(builder.accumulate(accumulator)), Form::Plain);
    return std::nullopt;
  }
  ir::Expr body = s.body;
  if (body->op == ir::ExprOp::Pow && scope.streamed(body->args[0]) &&
      !scope.results(body->args[0]) && !scope.streamed(body->args[1])) {
    accumulator.lift = pool.cast(dtype, body->args[0]);
    ir::Expr base = builder.state(builder.accumulate(accumulator));
    builder.finish(stage, pool.make(ir::ExprOp::Pow, {base, pool.cast(dtype, body->args[1])}),
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
  ir::Expr h = pool.mul(product(pool, term.d, dtype), pool.number(term.coefficient, dtype));
  if (!term.d_inverse.empty()) h = pool.div(h, product(pool, term.d_inverse, dtype));
  if (!term.exp_d.empty())
    h = pool.mul(h, pool.make(ir::ExprOp::Exp, {sum(pool, term.exp_d, dtype)}));
  accumulator.lift = lift_of(builder, stage, term, nullptr, dtype);
  ir::Expr count = pool.cast(dtype, pool.leaf(ir::LeafKind::Count, 0, DType::Int64));
  ir::Expr value = pool.mul(builder.state(builder.accumulate(accumulator)),
                            pool.make(ir::ExprOp::Pow, {h, count}));
  builder.finish(stage, value, Form::Deferred);
  return std::nullopt;
}

namespace {

ir::Reduction opposite(ir::Reduction reduction) {
  switch (reduction) {
    case ir::Reduction::Max:
      return ir::Reduction::Min;
    case ir::Reduction::Min:
      return ir::Reduction::Max;
    case ir::Reduction::ArgMax:
      return ir::Reduction::ArgMin;
    case ir::Reduction::ArgMin:
      return ir::Reduction::ArgMax;
    case ir::Reduction::TopK:
      return ir::Reduction::BottomK;
    default:
      return ir::Reduction::TopK;
  }
}

struct Extremum {
  ir::Expr u = nullptr, phi = nullptr;  // phi over State leaf 0, replaced by the caller
  bool increasing = true;
};

// x·d with the sign of d proved, or x + d, after expansion.
std::variant<Extremum, Refusal> separate_extremum(const StageScope& scope, ir::Expr body,
                                                  DType dtype) {
  ir::ExprPool& pool = scope.pool;
  ir::Expr slot = pool.leaf(ir::LeafKind::State, -1, dtype);
  if (auto direct = monotone(scope, body)) {
    return Extremum{direct->u,
                    pool.substitute(body, {{direct->u, pool.cast(direct->u->dtype, slot)}}),
                    direct->increasing};
  }
  auto decomposed = decompose(scope, body);
  if (auto* refusal = std::get_if<Refusal>(&decomposed)) return *refusal;
  auto& terms = std::get<std::vector<Term>>(decomposed);
  auto factor = [&](const Term& term) {
    ir::Expr d = pool.mul(product(pool, term.d, dtype), pool.number(term.coefficient, dtype));
    if (!term.d_inverse.empty()) d = pool.div(d, product(pool, term.d_inverse, dtype));
    if (!term.exp_d.empty())
      d = pool.mul(d, pool.make(ir::ExprOp::Exp, {sum(pool, term.exp_d, dtype)}));
    return d;
  };
  auto streamed = [&](const Term& term) {
    ir::Expr x = product(pool, term.x, dtype);
    if (term.exp_x.empty()) return x;
    return pool.mul(x, pool.make(ir::ExprOp::Exp, {sum(pool, term.exp_x, dtype)}));
  };
  for (const Term& term : terms) {
    if (!term.guards.empty()) return Refusal{"a maximum of a guarded value", body};
  }
  if (terms.size() == 1) {
    ir::Expr d = factor(terms[0]);
    const Sign sign = sign_of(scope, d);
    if (sign == Sign::Unknown) {
      return Refusal{"the sign of " + to_string(pool, d) +
                         ", which multiplies the streamed element under a maximum, is not proved",
                     body};
    }
    return Extremum{streamed(terms[0]), pool.mul(slot, d), sign != Sign::Negative};
  }
  std::vector<ir::Expr> x, d;
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
  ir::ExprPool& pool = builder.pool();
  const Stage& s = builder.cascade().stages[stage];
  // The extremum of no elements is the type's lowest or highest value.
  const DType dtype = is_integer(s.body->dtype) ? s.body->dtype : state_dtype(s.body->dtype);
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
  ir::Expr slot = pool.leaf(ir::LeafKind::State, -1, dtype);
  auto phi = [&](ir::Expr value) { return pool.substitute(extremum.phi, {{slot, value}}); };
  const bool ranked = is_ranked(s.reduction);
  const bool value = s.reduction == ir::Reduction::Max || s.reduction == ir::Reduction::Min;
  builder.finish(stage, value ? phi(builder.state(number)) : builder.state(number), Form::Deferred);
  builder.reports.back().G = builder.text(extremum.u);
  builder.reports.back().H = builder.text(extremum.phi);
  if (ranked) {
    // Ranked values are read by rank; φ is applied at the read.
    const int64_t read = -(2 * static_cast<int64_t>(stage) + 2);
    for (CascadeOutput& output : builder.streaming.cascade.outputs) {
      output.body = pool.rewrite(output.body, [&](ir::Expr e) -> ir::Expr {
        return e->op == ir::ExprOp::Read && e->integer == read ? phi(e) : nullptr;
      });
    }
  }
  return std::nullopt;
}

}  // namespace redfuser::cascade
