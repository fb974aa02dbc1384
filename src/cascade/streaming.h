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

// How an accumulator follows the results that it depends on.
enum class Form {
  Plain,       // F does not use earlier results
  Deferred,    // G summed, H applied once at the end
  Rescaled,    // A <- A·ρ(old, new) ⊕ F(x, new)
  Translated,  // centred moments, moved by the parallel-axis rule (Chan et al.)
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
  // NewResult(r). Null is the identity: the accumulator needs no repair.
  ir::Expr transport = nullptr;
};

// A quantity of the running state that lifts and transports refer to: a running maximum, a centre.
struct Reference {
  ir::Expr value = nullptr;  // over State(i) leaves of accumulators before `ready_after` and Count
  int ready_after = 0;       // computable once accumulators [0, ready_after) are updated
};

struct Streaming {
  Cascade cascade;  // what is computed; its outputs are over Result leaves
  std::vector<Accumulator> accumulators;
  std::vector<Reference> references;
  // d_i over State, Result (earlier stages), rows, reads of rows, and the stage's columns.
  std::vector<ir::Expr> finish;
  // False where a sum was split into parts: infinite inputs may then meet as inf - inf, and a
  // result that the graph makes infinite may be NaN. Finite results are never affected.
  bool exact_infinities = true;
};

std::string to_string(const ir::ExprPool& pool, const Streaming& streaming);

}  // namespace redfuser::cascade
