// The part of the streamed axis that a block of rows depends on. Under a causal or sliding-window
// mask most tiles have masked elements only: their lifts are the identities of their reductions,
// and the tiles can be skipped if all factors of masked zeros and addends of masked infinities are
// finite, which a run checks.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "cascade/visibility/masked_operands.h"
#include "cpu/tile/interval.h"
#include "ir/expr.h"

namespace redfuser::cpu {

// The value of a Bool expression of indices if it is constant over the tile, else nullopt.
std::optional<bool> uniform_truth(ir::Expr condition, const AxisIntervals& ranges);

class CascadeTrim {
 public:
  struct Fold {
    ir::Reduction reduction;
    ir::Expr lift;
  };
  // `stream` is the streamed axis, null if it has one element.
  CascadeTrim() = default;
  CascadeTrim(ir::ExprPool& pool, ir::Expr stream, const std::vector<Fold>& folds);

  // The part [begin, end) of the streamed axis outside which every lift is an identity for the
  // given ranges of the other axes; at most `granularity` - 1 elements too long at each end.
  struct Part {
    int64_t begin, end;
  };
  Part part(const AxisIntervals& ranges, int64_t granularity) const;
  // Whether a mask of indices can hide a whole tile.
  bool possible() const { return possible_; }
  // The trim is exact if every element of these values is finite and `bounded` is true for their
  // largest magnitudes.
  const std::vector<int64_t>& finite_values() const { return operands_.values; }
  bool bounded(const std::vector<double>& largest) const;

 private:
  bool empty(const AxisIntervals& ranges, int64_t begin, int64_t end) const;
  ir::Expr stream_ = nullptr;
  std::vector<ir::Expr> hidden_;  // by fold: where its lift is the identity
  cascade::MaskedOperands operands_;
  bool possible_ = false;
};

}  // namespace redfuser::cpu
