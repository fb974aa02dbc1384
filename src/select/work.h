// The work of evaluating expressions at every point of some axes, and the time that it takes.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "ir/expr.h"
#include "select/machine.h"

namespace redfuser::select {

// Sizes as far as they are known: constants, and those of symbols where these are given.
class KnownSizes {
 public:
  KnownSizes() = default;
  // `symbols[i]` is the value of the symbol numbered i; they must outlive this.
  explicit KnownSizes(std::span<const int64_t> symbols) : symbols_(symbols) {}
  // Every symbol has this value.
  static KnownSizes all(int64_t value);
  // -1: not known.
  int64_t of(ir::Expr size) const;

 private:
  std::span<const int64_t> symbols_;
  int64_t every_ = -1;
};

struct Work {
  double bytes = 0;     // of distinct elements, read or written: through DRAM
  double accesses = 0;  // bytes of all reads and writes, or what moves in their loads' cycles
  double scalars = 0;   // instructions, but for those below
  double specials = 0;  // exponentials and the like
  double points = 0;    // that are evaluated independently
  double steps = 0;     // reductions' elements that one point takes one after the other
  double blocks = 0;    // of the kernel, where they are known
};

// Of the roots at every point of `axes`, the last of which is along consecutive threads. Unknown
// sizes count as 1.
Work work_of(std::span<const ir::Expr> roots, const std::vector<ir::Expr>& axes,
             const KnownSizes& sizes);

// Microseconds of one kernel, its launch included, with `lanes` threads for each point. A
// multiprocessor runs `resident` threads at a time.
double time_of(const Work& work, const Machine& machine, int lanes = 1,
               double resident = kThreadsOfMultiprocessor);

}  // namespace redfuser::select
