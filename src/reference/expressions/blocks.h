// An expression without reductions at every point of its axes, block by block.
#pragma once

#include <functional>
#include <vector>

#include "ir/expr.h"
#include "reference/expressions/lanes.h"

namespace redfuser::reference {

// The tensor of a Read's number.
using Source = std::function<const Tensor&(int64_t)>;

// The size of an axis. InternalError unless it is a constant.
int64_t extent_of(ir::Expr axis);
Dims extents_of(const std::vector<ir::Expr>& axes);
// The number of points: the product of the sizes.
int64_t points_of(const std::vector<ir::Expr>& axes);

class Blocks {
 public:
  // Points are numbered in the row-major order of `axes`, which contain every free axis of `expr`.
  Blocks(ir::Expr expr, const std::vector<ir::Expr>& axes, const Source& source);

  // The values at the points [first, first + count), valid until the next call. A read outside of
  // its tensor, in a branch that is not selected, gives the nearest element, or zero for an empty
  // tensor.
  const Lanes& at(int64_t first, int64_t count);

  // The number of points.
  int64_t size() const { return size_; }

  // Calls body(first, count, values) for all points of [begin, end) in order.
  using Body = std::function<void(int64_t, int64_t, const Lanes&)>;
  void for_each(int64_t begin, int64_t end, const Body& body);

 private:
  struct Axis {
    int64_t extent, stride;
  };
  struct Operation {
    ir::Expr expr;
    std::vector<size_t> args;        // operations before it
    const Tensor* tensor = nullptr;  // of a Read
    Axis axis{1, 1};
  };

  Lanes computed(const Operation& operation, int64_t first, int64_t count) const;
  Lanes read(const Operation& operation) const;

  std::vector<Operation> operations_;
  std::vector<Lanes> values_;  // of the operations
  int64_t size_, block_;
};

}  // namespace redfuser::reference
