#include "cascade/derive/derive.h"

#include <algorithm>

#include "base/error.h"
#include "cascade/derive/builder.h"
#include "cascade/derive/centre.h"
#include "cascade/derive/derive_extremum.h"
#include "cascade/derive/derive_sum.h"

namespace redfuser::cascade {

StreamingBuilder::StreamingBuilder(ir::ExprPool& pool, const Cascade& cascade, bool texts)
    : pool_(pool), cascade_(cascade), texts_(texts) {
  streaming.cascade = cascade;
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

ir::Expr StreamingBuilder::state(int accumulator) const {
  const Accumulator& a = streaming.accumulators[static_cast<size_t>(accumulator)];
  return pool_.leaf(ir::LeafKind::State, accumulator, is_arg(a.reduction) ? DType::Int64 : a.dtype);
}

ir::Expr StreamingBuilder::running(ir::Expr over_results) {
  return pool_.rewrite(over_results, [&](ir::Expr e) -> ir::Expr {
    if (e->op != ir::ExprOp::Leaf || e->leaf_kind != ir::LeafKind::Result) return nullptr;
    return pool_.cast(e->dtype, running_finish_[static_cast<size_t>(e->integer)]);
  });
}

int StreamingBuilder::refer(ir::Expr value) {
  value = running(value);
  for (size_t i = 0; i < streaming.references.size(); ++i) {
    if (streaming.references[i].value == value) return static_cast<int>(i);
  }
  Reference reference{value, 0};
  visit(value, [&](ir::Expr e) {
    if (e->op == ir::ExprOp::Leaf && e->leaf_kind == ir::LeafKind::State) {
      reference.ready_after = std::max(reference.ready_after, static_cast<int>(e->integer) + 1);
    }
  });
  streaming.references.push_back(reference);
  return static_cast<int>(streaming.references.size() - 1);
}

ir::Expr StreamingBuilder::old_reference(int reference, DType dtype) {
  return pool_.leaf(ir::LeafKind::OldResult, reference, dtype);
}
ir::Expr StreamingBuilder::new_reference(int reference, DType dtype) {
  return pool_.leaf(ir::LeafKind::NewResult, reference, dtype);
}

void StreamingBuilder::finish(size_t stage, ir::Expr value, Form form) {
  RF_CHECK(streaming.finish.size() == stage, "stages are derived in order");
  const Stage& s = cascade_.stages[stage];
  const bool folds = s.reduction == ir::Reduction::Sum || s.reduction == ir::Reduction::Prod;
  // Integer states have 64 bits; the result wraps around within its own type.
  const bool wraps = folds && is_integer(s.body->dtype);
  streaming.finish.push_back(wraps ? pool_.cast(s.body->dtype, value) : value);
  running_finish_.push_back(running(streaming.finish.back()));
  StageReport& report = reports.emplace_back();
  report.reduce = name_of(s.reduction);
  report.form = name_of(form);
  report.F = text(s.body);
}

namespace {

// Integers wrap around and their division truncates, so identities of real numbers do not hold.
std::optional<Refusal> refuse_integers(ir::ExprPool& pool, const StageScope& scope, ir::Expr body) {
  if (!is_integer(body->dtype) || !scope.results(body)) return std::nullopt;
  return Refusal{"integers, which wrap around, of an earlier result: " + to_string(pool, body),
                 body};
}

std::optional<Refusal> derive_stage(StreamingBuilder& builder, size_t stage) {
  const Stage& s = builder.cascade().stages[stage];
  if (auto refusal = refuse_integers(builder.pool(), builder.scope(stage), s.body)) return refusal;
  switch (s.reduction) {
    case ir::Reduction::Sum:
      return derive_sum(builder, stage);
    case ir::Reduction::Prod:
      return derive_product(builder, stage);
    default:
      return derive_extremum(builder, stage);
  }
}

}  // namespace

std::variant<Derivation, StageRefusal> derive(ir::ExprPool& pool, const Cascade& input,
                                              bool texts) {
  const Cascade cascade = centre_moments(pool, input);
  StreamingBuilder builder(pool, cascade, texts);
  for (size_t i = 0; i < cascade.stages.size(); ++i) {
    const std::optional<Refusal> refusal = derive_stage(builder, i);
    if (refusal) return StageRefusal{i, *refusal};
  }
  return Derivation{std::move(builder.streaming), std::move(builder.reports)};
}

}  // namespace redfuser::cascade
