#include "codegen/attention/score_form.h"

#include <algorithm>
#include <cmath>

#include "ir/contraction.h"

namespace redfuser::codegen {
namespace {

bool contains(ir::Expr root, ir::Expr part) {
  bool found = false;
  visit(root, [&](ir::Expr x) { found |= x == part; });
  return found;
}

bool alike(DType a, DType b) { return is_float(a) && value_type(a) == value_type(b); }

// e = constant · rest through products, quotients and casts that keep the value.
struct Scaled {
  double constant = 1;
  ir::Expr rest = nullptr;
  int steps = 0;
};
Scaled scaled(ir::Expr e) {
  Scaled result{1, e, 0};
  auto usable = [](ir::Expr c) {
    return c->is_constant() && is_float(c->dtype) && std::isfinite(c->number) && c->number != 0;
  };
  while (true) {
    ir::Expr x = result.rest;
    if (x->op == ir::ExprOp::Cast && alike(x->dtype, x->args[0]->dtype)) {
      result.rest = x->args[0];
      continue;
    }
    if (x->op == ir::ExprOp::Mul && x->args.size() == 2 && is_float(x->dtype)) {
      const int at = usable(x->args[0]) ? 0 : usable(x->args[1]) ? 1 : -1;
      if (at < 0) return result;
      result.constant *= x->args[at]->number;
      result.rest = x->args[1 - at];
    } else if (x->op == ir::ExprOp::Div && is_float(x->dtype) && usable(x->args[1])) {
      result.constant /= x->args[1]->number;
      result.rest = x->args[0];
    } else {
      return result;
    }
    ++result.steps;
  }
}

bool single(double constant) {
  const double magnitude = std::fabs(constant);
  return magnitude > 0x1p-120 && magnitude < 0x1p120;
}

// Merges chains of constant factors into one multiplication.
class FoldedFactors {
 public:
  explicit FoldedFactors(ir::ExprPool& pool) : pool_(pool) {}
  ir::Expr operator()(ir::Expr root) {
    return pool_.rewrite(root, [this](ir::Expr e) -> ir::Expr {
      if (!is_float(e->dtype) || value_type(e->dtype) != value_type(DType::Float32)) return nullptr;
      if (e->op != ir::ExprOp::Div && e->op != ir::ExprOp::Mul) return nullptr;
      const Scaled parts = scaled(e);
      if (parts.steps == 0 || !single(parts.constant)) return nullptr;
      if (parts.steps == 1 && e->op == ir::ExprOp::Mul) return nullptr;
      ir::Expr rest = (*this)(parts.rest);
      return pool_.mul(pool_.cast(e->dtype, rest), pool_.number(parts.constant, e->dtype));
    });
  }

 private:
  ir::ExprPool& pool_;
};

// If scores occur only as tanh(raw · c), the tanh is computed for a whole tile at once.
void map_tanh(ir::ExprPool& pool, ScoreSpec& form) {
  std::vector<ir::Expr> found;
  for (const cascade::Accumulator& a : form.rows.accumulators) {
    visit(a.lift, [&](ir::Expr e) {
      if (e->op != ir::ExprOp::Tanh || !contains(e, form.raw)) return;
      if (std::find(found.begin(), found.end(), e) == found.end()) found.push_back(e);
    });
  }
  if (found.size() != 1) return;
  const Factored argument = factored(pool, found[0]->args[0]);
  if (argument.rest != form.raw || value_type(found[0]->dtype) != "float") return;
  ir::Expr mapped = pool.leaf(ir::LeafKind::Product, 2, found[0]->dtype);
  auto without = [&](ir::Expr e) { return pool.substitute(e, {{found[0], mapped}}); };
  for (const cascade::Accumulator& a : form.rows.accumulators) {
    if (contains(without(a.lift), form.raw)) return;
  }
  for (cascade::Accumulator& a : form.rows.accumulators) a.lift = without(a.lift);
  if (form.kept) form.kept = without(form.kept);
  form.raw = mapped;
  form.tanh_scale = argument.constant;
}

}  // namespace

bool ScoreSpec::element_level(ir::Expr e) const {
  return e->depends_on(rows.cascade.stream) || contains(e, raw);
}

bool ScoreSpec::reduces_kept(size_t k) const {
  const cascade::Accumulator& a = rows.accumulators[k];
  return kept && without_float_casts(a.lift) == without_float_casts(kept) && k < phases[0].end &&
         (a.reduction == ir::Reduction::Max || a.reduction == ir::Reduction::Min);
}

std::vector<ir::Expr> ScoreSpec::lifts_of(size_t phase) const {
  std::vector<ir::Expr> result;
  for (size_t k = phases[phase].begin; k < phases[phase].end; ++k) {
    result.push_back(rows.accumulators[k].lift);
  }
  return result;
}

Factored factored(ir::ExprPool& pool, ir::Expr e) {
  const Scaled parts = scaled(e);
  Factored result{1, e};
  if (parts.constant > 0 && single(parts.constant)) result = {parts.constant, parts.rest};
  ir::Expr x = result.rest;
  if (x->op != ir::ExprOp::Select) return result;
  ir::Expr then = x->args[1], other = x->args[2];
  const bool swapped = then->is_constant();
  if (swapped) std::swap(then, other);
  if (!other->is_constant() || std::isfinite(other->number)) {
    if (!other->is_constant(0)) return result;
  }
  const Factored inner = factored(pool, then);
  if (inner.constant == 1) return result;
  ir::Expr part = pool.cast(x->dtype, inner.rest);
  return {result.constant * inner.constant,
          swapped ? pool.select(x->args[0], other, part) : pool.select(x->args[0], part, other)};
}

ScoreSpec score_spec(ir::ExprPool& pool, const AttentionSpec& form,
                     const std::vector<ir::Expr>& lifts) {
  ScoreSpec result;
  result.rows = form.rows;
  result.value = form.value_accumulator;
  for (size_t k = 0; k < lifts.size(); ++k) result.rows.accumulators[k].lift = lifts[k];
  result.phases = phases_of(form.rows);
  std::vector<ir::Expr> shared;
  for (ir::Expr e : shared_values(result.rows, result.phases)) {
    if (contains(e, form.contraction)) shared.push_back(e);
  }
  result.raw = pool.leaf(ir::LeafKind::Product, 0, form.contraction->dtype);
  ir::Expr score = result.raw;
  if (form.scale) score = pool.mul(score, pool.cast(score->dtype, form.scale));
  FoldedFactors fold(pool);
  auto prepared = [&](ir::Expr e) { return fold(pool.substitute(e, {{form.contraction, score}})); };
  for (cascade::Accumulator& a : result.rows.accumulators) a.lift = prepared(a.lift);
  if (shared.size() == 1) result.kept = prepared(shared[0]);
  map_tanh(pool, result);
  if (result.kept) result.kept_factors = factored(pool, result.kept);
  // The kept value replaces the raw score in its registers, so later passes cannot use the score.
  ir::Expr stand_in = pool.leaf(ir::LeafKind::Product, 1, form.contraction->dtype);
  for (size_t i = 1; i < result.phases.size() && result.kept; ++i) {
    for (size_t k = result.phases[i].begin; k < result.phases[i].end; ++k) {
      ir::Expr lift = result.rows.accumulators[k].lift;
      ir::Expr rest =
          pool.substitute(lift, {{result.kept, pool.cast(result.kept->dtype, stand_in)}});
      if (contains(rest, result.raw)) result.kept = nullptr;
      if (result.kept == nullptr) break;
    }
  }
  const auto& list = result.rows.accumulators;
  for (size_t k = 0; k < list.size(); ++k) {
    bool own = list[k].form != cascade::Form::Translated;
    for (const cascade::Reference& reference : result.rows.references)
      own &= !uses_state(reference.value, k);
    for (size_t other = 0; other < list.size(); ++other) {
      own &= other == k || !uses_state(list[other].transport, k);
      own &= other == k || !uses_state(list[k].transport, other);
    }
    result.per_lane.push_back(own);
  }
  return result;
}

}  // namespace redfuser::codegen
