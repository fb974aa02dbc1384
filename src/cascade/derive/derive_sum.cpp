// Sums: the form of each term, and the factor that finish applies.
#include "cascade/derive/derive_sum.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "cascade/algebra/refute.h"
#include "cascade/algebra/terms.h"
#include "cascade/derive/moments.h"
#include "cascade/derive/trend.h"

namespace redfuser::cascade {
namespace {

bool is_extremum(ir::Reduction reduction) {
  return reduction == ir::Reduction::Max || reduction == ir::Reduction::Min;
}

// All results in `e` are running maxima or minima, so rescaling by them cannot overflow.
bool only_extrema(const StreamingBuilder& builder, ir::Expr e) {
  bool any = false, all = true;
  visit(e, [&](ir::Expr leaf) {
    if (leaf->op != ir::ExprOp::Leaf) return;
    any = true;
    all &= leaf->leaf_kind == ir::LeafKind::Result &&
           is_extremum(builder.cascade().stages[static_cast<size_t>(leaf->integer)].reduction);
  });
  return any && all;
}

bool is_running_maximum(const StreamingBuilder& builder, ir::Expr reference) {
  return reference->op == ir::ExprOp::Leaf && reference->leaf_kind == ir::LeafKind::State &&
         builder.streaming.accumulators[static_cast<size_t>(reference->integer)].reduction ==
             ir::Reduction::Max;
}

// The running maximum of the exponent's streamed part if an earlier stage computes it, else null.
ir::Expr running_top(const StreamingBuilder& builder, const Term& term, DType dtype) {
  if (term.exp_x.empty()) return nullptr;
  ir::Expr exponent = sum(builder.pool(), term.exp_x, dtype);
  const auto& accumulators = builder.streaming.accumulators;
  for (size_t i = 0; i < accumulators.size(); ++i) {
    if (accumulators[i].reduction == ir::Reduction::Max && accumulators[i].lift == exponent) {
      return builder.state(static_cast<int>(i));
    }
  }
  return nullptr;
}

struct TermForm {
  Form form = Form::Plain;
  ir::Expr finish = nullptr;
  std::string G, H, rho;
};

// The maximum of the exponent's streamed part, kept for this sum; null if the exponent has columns.
ir::Expr own_top(StreamingBuilder& builder, size_t stage, const Term& term, DType dtype) {
  Accumulator maximum;
  maximum.reduction = ir::Reduction::Max;
  maximum.stage = static_cast<int>(stage);
  maximum.dtype = dtype;
  maximum.lift = sum(builder.pool(), term.exp_x, dtype);
  for (ir::Expr column : builder.cascade().stages[stage].columns) {
    if (maximum.lift->depends_on(column)) return nullptr;
  }
  return builder.state(builder.accumulate(maximum));
}

// How the exponent of results of a term is applied, exp(Σ exp_d) = exp(-c)·exp(Σ deferred).
struct Rescaling {
  ir::Expr c = nullptr;    // while streaming; null: the term is not rescaled
  bool maximum = false;    // c is a running maximum
  ir::Expr top = nullptr;  // else, a running maximum to rescale by in place of c, or null
  std::vector<ir::Expr> deferred;
};

Rescaling rescaling_of(StreamingBuilder& builder, size_t stage, const Term& term, DType dtype) {
  ir::ExprPool& pool = builder.pool();
  Rescaling result;
  std::vector<ir::Expr> pieces;
  for (ir::Expr piece : term.exp_d) {
    if (only_extrema(builder, piece)) {
      pieces.push_back(pool.make(ir::ExprOp::Neg, {pool.cast(dtype, piece)}));
    } else {
      result.deferred.push_back(piece);
    }
  }
  if (pieces.empty()) return result;
  result.c = sum(pool, pieces, dtype);
  ir::Expr running = builder.running(result.c);
  result.maximum = is_running_maximum(builder, running);
  if (result.maximum) return result;
  result.top = running_top(builder, term, dtype);
  // While c is large, lifts underflow that count once it has fallen.
  if (result.top || !may_fall(builder, running)) return result;
  if (!term.exp_x.empty()) result.top = own_top(builder, stage, term, dtype);
  if (!result.top) return {nullptr, false, nullptr, term.exp_d};
  return result;
}

}  // namespace

ir::Expr lift_of(StreamingBuilder& builder, size_t stage, const Term& term, ir::Expr safe,
                 DType dtype) {
  ir::ExprPool& pool = builder.pool();
  std::vector<ir::Expr> tile, with_columns;
  for (ir::Expr x : term.x) {
    const auto& columns = builder.cascade().stages[stage].columns;
    const bool in_columns =
        std::any_of(columns.begin(), columns.end(), [&](ir::Expr c) { return x->depends_on(c); });
    (in_columns ? with_columns : tile).push_back(x);
  }
  if (!term.exp_x.empty()) {
    ir::Expr exponent = sum(pool, term.exp_x, dtype);
    if (safe) exponent = pool.sub(exponent, safe);
    tile.push_back(pool.make(ir::ExprOp::Exp, {exponent}));
  } else if (safe) {
    tile.push_back(pool.make(ir::ExprOp::Exp, {pool.make(ir::ExprOp::Neg, {safe})}));
  }
  if (with_columns.empty()) return product(pool, tile, dtype);
  if (tile.empty()) return product(pool, with_columns, dtype);
  return pool.mul(product(pool, tile, dtype), product(pool, with_columns, dtype));
}

namespace {

// One term of a sum: A ⊕= lift, rescaled by ρ = exp(c_old - c_new) if it has a reference c.
TermForm derive_term(StreamingBuilder& builder, size_t stage, const Term& term, DType dtype) {
  ir::ExprPool& pool = builder.pool();
  const double infinity = std::numeric_limits<double>::infinity();
  TermForm result;
  const Rescaling rescaling = rescaling_of(builder, stage, term, dtype);
  ir::Expr c = rescaling.c, top = rescaling.top;
  const bool maximum = rescaling.maximum;
  std::vector<ir::Expr> deferred_exponents = rescaling.deferred;
  Accumulator accumulator;
  accumulator.stage = static_cast<int>(stage);
  accumulator.columns = builder.cascade().stages[stage].columns;
  accumulator.dtype = dtype;
  ir::Expr value = nullptr;
  if (term.x.empty() && term.exp_x.empty()) {
    value = pool.cast(dtype, pool.leaf(ir::LeafKind::Count, 0, DType::Int64));
    deferred_exponents = term.exp_d;
    result.form = term.uses_results() ? Form::Deferred : Form::Plain;
    result.G = "1";
  } else if (c) {
    // The reference is c if c is a maximum. Otherwise (m + max(x - m), or a finite substitute for
    // an infinite m) it is the maximum m, and finish multiplies by exp(m - c). If the maximum is
    // -inf, only exp(-inf) = 0 has been added, so any finite substitute works; if it replaces c
    // itself, finish multiplies by exp(+inf), and 0·inf = NaN as in the graph.
    const int reference = builder.refer(top ? top : c);
    ir::Expr now = builder.new_reference(reference, dtype);
    ir::Expr before = builder.old_reference(reference, dtype);
    auto empty = [&](ir::Expr at) { return pool.make(ir::ExprOp::IsNegInf, {at}); };
    auto finite = [&](ir::Expr at) {
      ir::Expr infinite =
          top ? pool.make(ir::ExprOp::Or, {empty(at), pool.make(ir::ExprOp::IsPosInf, {at})})
              : empty(at);
      return pool.select(infinite, pool.number(0, dtype), at);
    };
    ir::Expr moved = top ? pool.sub(finite(before), finite(now)) : pool.sub(before, now);
    ir::Expr rho =
        pool.select(empty(before), pool.number(1, dtype), pool.make(ir::ExprOp::Exp, {moved}));
    accumulator.form = result.form = Form::Rescaled;
    accumulator.lift = lift_of(builder, stage, term, finite(now), dtype);
    const auto own = static_cast<int64_t>(builder.streaming.accumulators.size());
    ir::Expr before_move = pool.leaf(ir::LeafKind::State, own, dtype);
    accumulator.transport = pool.mul(before_move, rho);
    if (!maximum && !top) {
      // A substitute hides the identity (c = 0 for an empty row): an exact 0 must stay 0.
      accumulator.transport =
          pool.select(pool.make(ir::ExprOp::Equal, {before_move, pool.number(0, dtype)}),
                      before_move, accumulator.transport);
    }
    // Accumulators are equal if they differ only in the number of their own State leaf.
    int number = -1;
    for (size_t i = 0; i < builder.streaming.accumulators.size(); ++i) {
      const Accumulator& other = builder.streaming.accumulators[i];
      if (other.lift == accumulator.lift && other.columns == accumulator.columns &&
          other.reduction == ir::Reduction::Sum && other.form == Form::Rescaled) {
        number = static_cast<int>(i);
      }
    }
    if (number < 0) number = builder.accumulate(accumulator);
    ir::Expr owed = top ? pool.make(ir::ExprOp::Exp, {pool.sub(finite(top), c)})
                        : pool.select(empty(builder.running(c)), pool.number(infinity, dtype),
                                      pool.number(1, dtype));
    value = pool.mul(builder.state(number), owed);
    result.G = builder.text(lift_of(builder, stage, term, nullptr, dtype));
    result.rho = builder.text(pool.make(ir::ExprOp::Exp, {pool.sub(before, now)}));
  } else {
    result.form = term.uses_results() ? Form::Deferred : Form::Plain;
    accumulator.form = Form::Plain;
    accumulator.lift = lift_of(builder, stage, term, nullptr, dtype);
    value = builder.state(builder.accumulate(accumulator));
    result.G = builder.text(accumulator.lift);
  }
  if (term.coefficient != 1) value = pool.mul(value, pool.number(term.coefficient, dtype));
  if (!term.d.empty()) value = pool.mul(value, product(pool, term.d, dtype));
  if (!term.d_inverse.empty()) value = pool.div(value, product(pool, term.d_inverse, dtype));
  if (!deferred_exponents.empty()) {
    value = pool.mul(value, pool.make(ir::ExprOp::Exp, {sum(pool, deferred_exponents, dtype)}));
  }
  for (ir::Expr guard : term.guards) value = pool.select(guard, value, pool.number(0, dtype));
  ir::Expr H = product(pool, term.d, dtype);
  if (!term.d_inverse.empty()) H = pool.div(H, product(pool, term.d_inverse, dtype));
  if (!term.exp_d.empty())
    H = pool.mul(H, pool.make(ir::ExprOp::Exp, {sum(pool, term.exp_d, dtype)}));
  result.H = builder.text(H);
  result.finish = value;
  return result;
}

// Adds the sampled rank to the reason if it shows that the body does not separate.
Refusal confirmed(const StageScope& scope, ir::Expr body, Refusal refusal) {
  constexpr int kPoints = 8;
  if (sampled_rank(scope, body, kPoints) == kPoints) {
    refusal.reason += fmt::format(" (its rank is at least {} at random points)", kPoints);
  }
  return refusal;
}

}  // namespace

std::optional<Refusal> derive_sum(StreamingBuilder& builder, size_t stage) {
  ir::ExprPool& pool = builder.pool();
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
  ir::Expr value = nullptr;
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

}  // namespace redfuser::cascade
