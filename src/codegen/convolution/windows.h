// The windows of convolutions and pools as index expressions.
#pragma once

#include <vector>

#include "ops/op_def.h"

namespace redfuser::codegen {

// Along each spatial dimension.
struct Windows {
  std::vector<int64_t> kernel, stride, dilation;
  std::vector<ir::Expr> pad_begin, pad_end;
  bool padded = false;  // some position may be outside of the input
};

// Of a node with the attributes of a convolution or a pool.
Windows windows_of(const ops::NodeView& view, std::vector<int64_t> kernel);

// The input's position along every spatial dimension under window position `taps` at output
// `point`, limited to the input.
struct TapPlace {
  std::vector<ir::Expr> at;
  ir::Expr inside = nullptr;  // whether it is one of the input's; null if every position is
};
TapPlace place_of(const ops::NodeView& view, const Windows& windows,
                  const std::vector<ir::Expr>& point, const std::vector<ir::Expr>& taps);
// The same along spatial dimension `i` alone.
TapPlace place_along(const ops::NodeView& view, const Windows& windows, size_t i, ir::Expr point,
                     ir::Expr tap);

// Input element [batch, channel] under window position `taps` at output `point`, or `outside`.
ir::Expr tap(const ops::NodeView& view, const Windows& windows, ir::Expr batch, ir::Expr channel,
             const std::vector<ir::Expr>& point, const std::vector<ir::Expr>& taps,
             ir::Expr outside);

// Axes of these extents, which have one name.
std::vector<ir::Expr> axes_of(ir::ExprPool& pool, const std::vector<ir::Expr>& extents,
                              const char* name);
// All but the first two: the spatial dimensions.
std::vector<ir::Expr> tail(const std::vector<ir::Expr>& list);
std::vector<ir::Expr> constants(ir::ExprPool& pool, const std::vector<int64_t>& values);

}  // namespace redfuser::codegen
