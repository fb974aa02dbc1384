// The incremental form of a cascade: constant state, folded tile by tile or merged from segments.
//
// Folding a tile x into the state, for each accumulator k in order:
//     A_k <- transport_k(A_k, old, new) ⊕_k (⊕_k over l in the tile of lift_k(x_l, new))
// where `old` and `new` are the running results (and centres) before and after, computed from the
// accumulators already updated. Merging two states transports both to the merged results:
//     merge(s, t)_k = transport_k(s_k, s, new) ⊕_k transport_k(t_k, t, new)
// so one derivation serves every level of a machine. Identities are exact: an empty state merges
// as if it were not there.
#pragma once

#include <string>
#include <vector>

#include "cascade/cascade.h"

namespace redfuser::cascade {

// How an accumulator stays consistent with running results that change.
enum class Form {
  Plain,       // F does not use earlier results
  Deferred,    // G summed, H applied once at the end
  Rescaled,    // A <- A·ρ(old, new) ⊕ F(x, new)
  Translated,  // centred moments, translated by the parallel-axis rule (Chan et al.)
};
std::string_view name_of(Form form);

struct Accumulator {
  ir::Reduction reduction = ir::Reduction::Sum;
  Form form = Form::Plain;
  int stage = -1;                 // the stage that it serves first
  std::vector<ir::Expr> columns;  // axes beside the rows
  int64_t k = 1;
  DType dtype = DType::Float32;
  // Over the streamed axis, rows, columns, reads and NewResult(r) leaves (r < references.size()).
  ir::Expr lift = nullptr;
  // Over State(i) leaves (this and earlier accumulators, old values), OldResult(r) and
  // NewResult(r). Null is the identity.
  ir::Expr transport = nullptr;
};

// A value of the running state that lifts and transports use: a running maximum, a centre.
struct Reference {
  ir::Expr value = nullptr;  // over State(i) leaves of accumulators before `ready_after` and Count
  int ready_after = 0;       // computable once accumulators [0, ready_after) are updated
};

struct Streaming {
  Cascade cascade;  // outputs are over Result leaves
  std::vector<Accumulator> accumulators;
  std::vector<Reference> references;
  // d_i over State, Result (earlier stages), rows, reads of rows, and the stage's columns.
  std::vector<ir::Expr> finish;
  // False if a sum was split into parts: with infinite inputs the parts may be inf - inf, so that a
  // result that is infinite in the graph may be NaN. Finite results are not affected.
  bool exact_infinities = true;
};

std::string to_string(const ir::ExprPool& pool, const Streaming& streaming);

}  // namespace redfuser::cascade
