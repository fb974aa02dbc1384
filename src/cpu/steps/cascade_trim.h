// Which part of the streamed axis can matter to a block of rows. Under a causal or sliding-window
// mask most tiles hold nothing but masked elements: their lifts are the identities of their
// reductions, and they need not be visited, if what a masked zero is multiplied with or a masked
// infinity is added to is finite. A run finds that out from the values.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "cascade/visibility/masked_operands.h"
#include "cpu/tile/specialize.h"
#include "ir/expr.h"

namespace redfuser::cpu {

// The value of a Bool expression where it is the same throughout the tile and follows from indices.
std::optional<bool> uniform_truth(ir::Expr condition, const AxisRanges& ranges);

// True if the lift is the identity of its reduction (Sum, Max or Min) throughout the tile, provided
// that everything which multiplies a zero or is added to an infinity is finite.
bool is_identity(ir::Reduction reduction, ir::Expr lift, const AxisRanges& ranges);

class CascadeTrim {
 public:
  struct Fold {
    ir::Reduction reduction;
    ir::Expr lift;
  };
  // `stream` is the streamed axis, null if it has one element.
  CascadeTrim() = default;
  CascadeTrim(ir::ExprPool& pool, ir::Expr stream, std::vector<Fold> folds);

  // The part [begin, end) of the streamed axis outside which every lift is an identity for the
  // given ranges of the other axes; at most `granularity` - 1 elements too long at each end.
  struct Part {
    int64_t begin, end;
  };
  Part part(const AxisRanges& ranges, int64_t granularity) const;
  // False if no mask of indices can empty a tile.
  bool possible() const { return possible_; }
  // The trim is exact where every element of these values is finite and `bounded` holds for the
  // largest magnitude of each.
  const std::vector<int64_t>& finite_values() const { return operands_.values; }
  bool bounded(const std::vector<double>& largest) const;

 private:
  bool empty(const AxisRanges& ranges, int64_t begin, int64_t end) const;
  ir::Expr stream_ = nullptr;
  std::vector<Fold> folds_;
  cascade::MaskedOperands operands_;
  bool possible_ = false;
};

}  // namespace redfuser::cpu
