// The passes over a tile of scores, as functions of a Form.
#include <algorithm>

#include <fmt/format.h>

#include "codegen/attention/mma/mma_functor.h"
#include "codegen/text/function_text.h"
#include "codegen/text/operation_text.h"

namespace redfuser::codegen {
void MmaFunctor::bind_score(Emitter& emitter, size_t phase) const {
  const bool known = std::find(shared_.begin(), shared_.end(), form_.contraction) != shared_.end();
  if (phase > 0 && known) return;
  if (!form_.scale) return emitter.bind(form_.contraction, "s");
  const std::string scale = emitter.emit_as(form_.scale, DType::Float32);
  emitter.line(fmt::format("const float scaled = {} * s;", scale));
  emitter.bind(form_.contraction, "scaled");
}

// What elements of a phase compute: an expression that is kept is computed once.
std::vector<ir::Expr> MmaFunctor::nested(size_t phase) const {
  std::vector<ir::Expr> result;
  if (phase == 0) result = shared_;
  for (size_t k = phases_[phase].begin; k < phases_[phase].end; ++k)
    result.push_back(form_.lift_of(k));
  return result;
}

std::string MmaFunctor::lift_function(size_t phase) {
  Emitter e = functor_.emitter();
  functor_.bind_row(e);
  StateText state(e, rows_, kOfStep, form_.value_accumulator);
  state.bind_new_references(phases_[phase].begin);
  e.open();
  e.nest(nested(phase));
  e.bind(rows_.cascade.stream, "at");
  bind_score(e, phase);
  for (size_t i = 0; i < shared_.size(); ++i) {
    const std::string kept = fmt::format("kept.value[{}]", i);
    if (phase > 0) {
      e.bind(shared_[i], kept);
    } else {
      e.line(fmt::format("{} = {};", kept, e.emit_whole(shared_[i], DType::Float32)));
      e.bind(shared_[i], kept);
    }
  }
  for (size_t k = phases_[phase].begin; k < phases_[phase].end; ++k) {
    const cascade::Accumulator& a = rows_.accumulators[k];
    if (form_.is_value(k)) {
      const std::string weight = e.emit_as(form_.weight, DType::Float32);
      e.line(fmt::format("weight = exists ? {} : 0.0f;", weight));
    } else {
      e.line(fmt::format("if (exists) part.a{0} = {1}::apply(part.a{0}, {2});", k,
                         combiner_of(a.reduction), e.emit_whole(a.lift, a.dtype)));
    }
  }
  const std::string element = e.close();
  return function_text(
      fmt::format("void lift(Phase<{}>, State& part, float& weight, Kept<{}>& kept, float s, const "
                  "State& to, const Row& row, long long at, bool exists) const",
                  phase, shared_.size()),
      e.close() + element);
}

}  // namespace redfuser::codegen
