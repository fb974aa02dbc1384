// Kernels for forms that pick elements by rank: the first k of a row in order, from k = 1 to a
// whole row sorted. The other reductions of the same row are folded in the same pass.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/functor/flat_streaming.h"
#include "codegen/ranking/ranking_cost.h"

namespace redfuser::codegen {

// A form with its ranked accumulators apart from the others.
struct RankingForm {
  FlatStreaming whole;
  FlatStreaming rest;  // without them; states and references are numbered anew
  std::vector<size_t> ranked;

  const cascade::Accumulator& accumulator(size_t i) const { return whole.accumulators[ranked[i]]; }
};
RankingForm ranking_form(ir::ExprPool& pool, const FlatStreaming& form);

// Why no kernel here computes the form; nullopt if one does.
std::optional<std::string> ranking_refusal(const StepBuilder& builder, const FlatStreaming& form);

RankingFacts ranking_facts(StepBuilder& builder, const RankingForm& form);

}  // namespace redfuser::codegen
