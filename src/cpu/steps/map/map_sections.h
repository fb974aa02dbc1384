// Sections of a pointwise step: ranges of axes in each of which the conditions of selections on
// those axes are known, as those of concatenated inputs are, and the branches of what elements are
// read, as those of padding are.
#pragma once

#include <span>
#include <vector>

#include "fuse/plan.h"

namespace redfuser::cpu {

// Positions [begin, end) of axis `axis` of the step.
struct AxisSection {
  size_t axis;
  int64_t begin, end;
};
// A range of each of some axes.
using MapSection = std::vector<AxisSection>;

// Positions [begin, end) of an axis, in a number that is constant.
struct AxisRange {
  ir::Expr begin, end;
};

// Replaces an axis by one of a range of its positions (by 0, of one position), of which branches
// are decided.
void narrow(ir::ExprPool& pool, ir::Expr axis, const AxisRange& range, std::vector<ir::Expr>& axes,
            const std::vector<std::vector<ir::Expr>*>& expressions);

// The expression with the operands of minima and maxima, signs and periods of indices, where all
// indices of the axes have the same.
ir::Expr decided(ir::ExprPool& pool, ir::Expr expr);

// The sections along one axis at these sizes, in order, which are all of it; empty where no
// selection depends on a position alone, or where there are too many. `boxes`: each of them divided
// along further axes, as long as there is one; then empty where no section is.
std::vector<MapSection> map_sections(const fuse::MapStep& step, std::span<const int64_t> symbols,
                                     bool boxes = false);

}  // namespace redfuser::cpu
