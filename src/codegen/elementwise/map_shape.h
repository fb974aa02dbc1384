// The axes and stores of an elementwise kernel, as its text loops over them.
#pragma once

#include <string>
#include <vector>

#include "codegen/core/step_builder.h"

namespace redfuser::codegen {

// One output of an elementwise kernel: value[offset] = body, both over the kernel's axes.
struct Store {
  int64_t value;
  ir::Expr body;    // flat
  ir::Expr offset;  // Int64
};

struct MapShape {
  std::vector<ir::Expr> axes;  // innermost last
  std::vector<Store> stores;
};

// The same stores over fewer axes and terms: adjacent axes are merged, reductions visit the terms
// that data leave, those of few elements are written out, and selections that change sides in the
// middle of an axis become stores of both sides.
MapShape simplified(ir::ExprPool& pool, MapShape shape);

// Makes axis `outer` and the next one a single axis if every offset and read allows it; false, with
// nothing changed, if not.
bool merge_pair(ir::ExprPool& pool, std::vector<ir::Expr>& axes, std::vector<Store>& stores,
                size_t outer);

bool has_reduce(const std::vector<Store>& stores);

// Distinct reads of the graph's values, in the order of the bodies.
std::vector<ir::Expr> reads_of(const std::vector<Store>& stores);

// A reduction for which a warp pays: outermost, long, and reading consecutive elements.
bool wants_warp(ir::ExprPool& pool, const std::vector<Store>& stores);

}  // namespace redfuser::codegen
