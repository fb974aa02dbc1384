// The sliding windows of convolutions and pools.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ops/op_def.h"

namespace redfuser::reference {

// The windows along one spatial dimension: element `o * stride + t * dilation - pad` of the input
// for tap t of output o.
struct Window {
  int64_t input, output, kernel, stride, dilation, pad, pad_end;
  int64_t extent() const { return (kernel - 1) * dilation + 1; }
};

// The windows of a node's input 0 and output 0, for the kernel's spatial sizes.
std::vector<Window> windows_of(const ops::LowerContext& context,
                               const std::vector<int64_t>& kernel);
// The spatial sizes of the weights.
std::vector<int64_t> kernel_of(const ops::LowerContext& context, int weights);
// Splits `missing` elements of padding between both ends; SAME_UPPER puts the odd one at the end.
void split_padding(const ops::NodeView& view, int64_t missing, Window& window);

int64_t size_at(const std::vector<ir::Expr>& shape, size_t dimension);
// An attribute with an entry for every spatial dimension.
int64_t spatial(const ops::NodeView& view, const std::string& name, size_t dimension,
                int64_t fallback);

// A position in every spatial dimension, and whether all of them are in the input.
struct Place {
  std::vector<ir::Expr> at;
  ir::Expr inside = nullptr;
};

// The input position that one tap per dimension reads for the output at `out`.
Place place_of(ir::ExprPool& pool, const std::vector<Window>& windows,
               std::span<const ir::Expr> out, const std::vector<ir::Expr>& taps);
// The same for a transposed convolution: the input whose tap contributes to the output at `out`.
Place transposed_place_of(ir::ExprPool& pool, const std::vector<Window>& windows,
                          std::span<const ir::Expr> out, const std::vector<ir::Expr>& taps);

// Loops 0, 1, ... of the node, one over the taps of every dimension.
std::vector<ir::Expr> tap_axes(const ops::LowerContext& context,
                               const std::vector<Window>& windows);
// `body` reduced over several axes.
ir::Expr over(ir::ExprPool& pool, ir::Reduction reduction, const std::vector<ir::Expr>& axes,
              ir::Expr body);
// x < high.
ir::Expr below(ir::ExprPool& pool, ir::Expr x, int64_t high);
std::vector<ir::Expr> joined(std::vector<ir::Expr> index, const std::vector<ir::Expr>& rest);

}  // namespace redfuser::reference
