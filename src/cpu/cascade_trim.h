// Which part of the streamed axis can matter to a block of rows. Under a causal or sliding-window
// mask most tiles hold nothing but masked elements: their lifts are the identities of their
// reductions, and they need not be visited.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "cpu/specialize.h"
#include "ir/expr.h"

namespace redfuser::cpu {

// The value of a Bool expression where it is the same throughout the tile and follows from indices.
std::optional<bool> uniform_truth(Expr condition, const AxisRanges& ranges);

// True if the lift is the identity of its reduction (Sum, Max or Min) throughout the tile, provided
// that everything which multiplies a zero or is added to an infinity is finite.
bool is_identity(Reduction reduction, Expr lift, const AxisRanges& ranges);

class CascadeTrim {
 public:
  struct Fold {
    Reduction reduction;
    std::vector<Expr> columns;
    Expr lift;
  };
  // `stream` is the streamed axis, null if it has one element.
  CascadeTrim() = default;
  CascadeTrim(Expr stream, std::vector<Fold> folds);

  // The part [begin, end) of the streamed axis outside which every lift is an identity for the
  // given ranges of the other axes; at most `granularity` - 1 elements too long at each end.
  struct Part {
    int64_t begin, end;
  };
  Part part(const AxisRanges& ranges, int64_t granularity) const;
  // False if no mask of indices can empty a tile.
  bool possible() const { return possible_; }
  // Values that meet a masked zero or infinity: the trim is exact only if they are finite.
  const std::vector<int64_t>& finite_values() const { return finite_; }

 private:
  void require_finite(Expr expr, bool into_reductions);
  bool empty(const AxisRanges& ranges, int64_t begin, int64_t end) const;
  Expr stream_ = nullptr;
  std::vector<Fold> folds_;
  std::vector<int64_t> finite_;
  bool possible_ = false;
};

}  // namespace redfuser::cpu
