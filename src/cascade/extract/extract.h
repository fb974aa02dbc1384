// From lowered outputs of a piece of graph to a Cascade.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "cascade/cascade.h"

namespace redfuser::cascade {

// One output element of the piece: `body` over `axes` (integer 0 for dimensions of one element).
struct LoweredOutput {
  ir::ValueId value = -1;
  ir::Expr body = nullptr;
  std::vector<ir::Expr> axes;
};

struct Extraction {
  Cascade cascade;
  bool has_producer = false;  // some body holds a contraction over another axis
  bool has_columns = false;   // some stage contracts the streamed axis with a value matrix
  bool maps_back = false;
};

// Whether a cascade has axes of its own, or shares those of equal sizes with others. Trials share:
// most of their expressions are then made already. The order of expressions in a cascade with axes
// of its own does not depend on earlier trials.
enum class Axes { Own, Shared };

// Finds the streamed axis, the stages in order, row axes and columns. All stage reductions must run
// over one axis; inner reductions that depend on it must be contractions of two reads. Returns the
// reason if the piece is not a cascade.
std::variant<Extraction, std::string> extract(ir::ExprPool& pool,
                                              const std::vector<LoweredOutput>& outputs,
                                              Axes axes = Axes::Own);
// An axis of an extent. `number` tells axes apart that one cascade has under the same name.
ir::Expr cascade_axis(ir::ExprPool& pool, Axes axes, const std::string& name, ir::Expr extent,
                      size_t number = 0);

}  // namespace redfuser::cascade
