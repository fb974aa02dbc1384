#include "cpu/steps/cascade/shared_terms.h"

#include <algorithm>
#include <optional>

namespace redfuser::cpu {
namespace {

bool reads_state(ir::Expr expr, size_t first, size_t end) {
  bool found = false;
  visit(expr, [&](ir::Expr e) {
    const bool state = e->op == ir::ExprOp::Leaf && e->leaf_kind == ir::LeafKind::State;
    found |= state && e->integer >= static_cast<int64_t>(first) &&
             e->integer < static_cast<int64_t>(end);
  });
  return found;
}

// The accumulator of a stage that has one of its own, which no other stage uses; else none.
std::optional<size_t> own_accumulator(const cascade::Streaming& form, size_t stage) {
  std::optional<size_t> own;
  for (size_t k = 0; k < form.accumulators.size(); ++k) {
    if (form.accumulators[k].stage != static_cast<int>(stage)) continue;
    if (own) return std::nullopt;
    own = k;
  }
  if (!own) return std::nullopt;
  const auto used = [&](ir::Expr e) { return e != nullptr && reads_state(e, *own, *own + 1); };
  for (size_t i = 0; i < form.finish.size(); ++i) {
    if (i != stage && used(form.finish[i])) return std::nullopt;
  }
  for (const cascade::Reference& reference : form.references) {
    if (used(reference.value)) return std::nullopt;
  }
  for (size_t k = 0; k < form.accumulators.size(); ++k) {
    if (k != *own && used(form.accumulators[k].transport)) return std::nullopt;
  }
  return own;
}

bool repeats(const cascade::Cascade& cascade, ir::Expr term) {
  return std::any_of(cascade.outputs.begin(), cascade.outputs.end(), [&](const auto& output) {
    bool found = false;
    if (output.maps_back) visit(output.body, [&](ir::Expr e) { found |= e == term; });
    return found;
  });
}

}  // namespace

size_t stages_ready(const cascade::Streaming& form, size_t lifted) {
  size_t ready = 0;
  while (ready < form.finish.size() && !picks_element(form.cascade.stages[ready].reduction) &&
         !reads_state(form.finish[ready], lifted, form.accumulators.size())) {
    ++ready;
  }
  return ready;
}

void share_terms(ir::ExprPool& pool, SpecializedStreaming& s) {
  cascade::Streaming& form = s.form;
  for (size_t i = 0; i < form.cascade.stages.size(); ++i) {
    const std::optional<size_t> own = own_accumulator(form, i);
    if (!own) continue;
    cascade::Accumulator& fold = form.accumulators[*own];
    ir::Expr term = form.cascade.stages[i].body;
    const bool plain = fold.form == cascade::Form::Rescaled && fold.columns.empty() &&
                       fold.dtype == term->dtype && fold.dtype == form.cascade.stages[i].dtype;
    if (!plain || !repeats(form.cascade, term) || stages_ready(form, *own) < i) continue;
    fold.lift = term;
    fold.transport = nullptr;
    form.finish[i] = pool.leaf(ir::LeafKind::State, static_cast<int64_t>(*own), fold.dtype);
  }
}

}  // namespace redfuser::cpu
