// From a cascade to its streaming form.
#pragma once

#include <variant>
#include <vector>

#include "cascade/algebra/algebra.h"
#include "cascade/report.h"
#include "cascade/streaming.h"

namespace redfuser::cascade {

struct StageRefusal {
  size_t stage = 0;  // the first stage that has no incremental form
  Refusal refusal;
};

struct Derivation {
  Streaming streaming;
  std::vector<StageReport> stages;
};

// Chooses a form for every stage (plain, deferred, rescaled, translated) and derives lift,
// transport and finish; refuses at the first stage whose body cannot be separated. The expressions
// in the stages' reports are written only with `texts`.
std::variant<Derivation, StageRefusal> derive(ir::ExprPool& pool, const Cascade& cascade,
                                              bool texts = true);

}  // namespace redfuser::cascade
