// The expressions of an attention form as arithmetic on the fragments of a score tile.
#pragma once

#include <string>
#include <vector>

#include "codegen/attention/attention.h"

namespace redfuser::codegen {

// constant · rest; constant > 0.
struct Factored {
  double constant = 1;
  ir::Expr rest;
};

struct ScoreSpec {
  FlatStreaming rows;       // lifts over `raw`; the value accumulator's is its weight
  size_t value = 0;         // the value accumulator
  ir::Expr raw = nullptr;   // the contraction, a leaf
  double tanh_scale = 0;    // if not 0, `raw` is tanh(contraction · tanh_scale) instead
  ir::Expr kept = nullptr;  // the value of an element that passes after the first use, or null
  Factored kept_factors;    // of kept
  std::vector<Phase> phases;
  // Accumulators of which each lane keeps a partial state until the end.
  std::vector<bool> per_lane;

  bool element_level(ir::Expr e) const;  // depends on the streamed element
  bool reduces_kept(size_t k) const;     // a maximum or minimum of `kept`
  std::vector<ir::Expr> lifts_of(size_t phase) const;
};

// `lifts`: one per accumulator, the weight for the value accumulator's.
ScoreSpec score_spec(ir::ExprPool& pool, const AttentionSpec& form,
                     const std::vector<ir::Expr>& lifts);

// The largest positive constant factor of an expression, through products and selections between it
// and 0 or ±inf.
Factored factored(ir::ExprPool& pool, ir::Expr e);

}  // namespace redfuser::codegen
