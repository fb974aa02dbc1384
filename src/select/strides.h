// Distances in memory between the elements that neighbours read.
#pragma once

#include <optional>
#include <vector>

#include "select/work.h"

namespace redfuser::select {

// Elements from one index of the axis to the next, on average over a warp; nullopt where tensor
// elements decide. Offsets that are not affine are evaluated at a place of the axes.
std::optional<double> stride_along(ir::Expr offset, ir::Expr axis, const KnownSizes& sizes);

// The least and the greatest offset, where it grows or falls along each axis; nullopt where tensor
// elements decide.
struct Span {
  double first, last;
};
std::optional<Span> span_over(ir::Expr offset, const std::vector<ir::Expr>& axes,
                              const KnownSizes& sizes);

// Cycles of a multiprocessor's first-level cache for a load of 32 lanes whose elements of `bytes`
// are so far apart: by the lanes that meet in a bank, and the lines.
double load_cycles(std::optional<double> stride, double bytes);

}  // namespace redfuser::select
