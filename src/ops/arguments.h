// Arguments that are attributes in early opsets and inputs in later ones. An `input` below zero
// means that the argument never is an input.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ops/op_def.h"
#include "ops/sizes.h"

namespace redfuser::ops {

// Integers that determine the result's structure (axes, steps): nullopt if both attribute and input
// are absent, UserError if the input is not constant.
std::optional<std::vector<int64_t>> constant_argument(const NodeView& view,
                                                      const std::string& attribute, int input);
// The same, as axes of `rank` dimensions: made non-negative and checked to be distinct.
std::optional<std::vector<int>> axes_argument(const NodeView& view, const std::string& attribute,
                                              int input, int rank);
// Sizes and positions as Int64 expressions; Reads for run-time values.
std::optional<std::vector<ir::Expr>> size_argument(const NodeView& view,
                                                   const std::string& attribute, int input);
std::optional<std::vector<ir::Expr>> size_argument(const LowerContext& context,
                                                   const std::string& attribute, int input);
// A number as an expression of dtype `dtype`.
std::optional<ir::Expr> scalar_argument(const LowerContext& context, const std::string& attribute,
                                        int input, DType dtype);

// The element type that an attribute names by its ONNX number; `fallback` where it is absent.
// UserError for types that RedFuser does not support.
DType type_argument(const NodeView& view, const std::string& attribute, DType fallback);
// Refuses constant indices of input `input` that are out of range; element j indexes a dimension of
// sizes[j % sizes.size()] elements.
void check_indices(const NodeView& view, int input, std::span<const ir::Expr> sizes);
// All elements of input `input` as indices in [-size, size).
Positions index_positions(const LowerContext& context, int input, ir::Expr size);
// The same for tuples of indices along the last dimension of the input, one index per dimension.
std::vector<Positions> tuple_positions(const LowerContext& context, int input,
                                       std::span<const ir::Expr> sizes);

// The only element of a scalar or one-element input, for shape rules (a Read if it is known at run
// time only) and for lowerings.
ir::Expr only_element(const NodeView& view, int input);
ir::Expr only_element(const LowerContext& context, int input);

}  // namespace redfuser::ops
