// Cascades of the attention class: a contraction gives a score for every streamed element, and a
// column accumulator sums weighted rows of a value matrix. One kernel computes them, without a
// score matrix in memory.
#pragma once

#include <vector>

#include "codegen/functor/flat_streaming.h"

namespace redfuser::codegen {

struct AttentionSpec {
  FlatStreaming rows;          // as a row kernel sees it, less the column axis
  ir::Expr contraction;        // the Reduce in the lifts
  ir::Expr scale;              // its factors that are free of the contracted axis, or null
  ir::Expr depth;              // the contracted axis
  ir::Expr query, key, value;  // flat Reads: [row.., depth], [stream.., depth], [stream.., column]
  ir::Expr column;             // the axis of the value columns
  size_t value_accumulator;    // Σ weight · value
  ir::Expr weight;
  ir::Expr row;                  // the row axis that tiles run along; null: one row
  std::vector<ir::Expr> others;  // the other row axes
  bool rounded_weights = false;  // the weights may have the value's precision, of 16 bits
  // A scratch buffer whose first element is 0 if hidden keys must be visited as well; -1: they need
  // not be.
  int64_t mask_check = -1;
  bool visits_hidden = false;  // all keys are visited, whatever the mask
  // Other expressions of the row axes, for which new axes are substituted as well; null ones stay.
  std::vector<ir::Expr> carried;

  bool is_value(size_t accumulator) const { return accumulator == value_accumulator; }
  // What a key adds to an accumulator: of the value, its weight.
  ir::Expr lift_of(size_t accumulator) const {
    return is_value(accumulator) ? weight : rows.accumulators[accumulator].lift;
  }
};

// A head size in whole steps of the tensor cores, 16 elements.
constexpr int padded_size(int64_t size) { return static_cast<int>((size + 15) / 16 * 16); }

// The largest head sizes of the portable families.
inline constexpr int64_t kLargestPortable = 128, kLargestSplit = 256;

}  // namespace redfuser::codegen
