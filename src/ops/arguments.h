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

// Integers that shape the result's structure (axes, steps): nullopt if neither the attribute nor
// the input is there, UserError if the input is not constant.
std::optional<std::vector<int64_t>> constant_argument(const NodeView& view,
                                                      const std::string& attribute, int input);
// The same, as axes of `rank` dimensions: made non-negative and checked to be distinct.
std::optional<std::vector<int>> axes_argument(const NodeView& view, const std::string& attribute,
                                              int input, int rank);
// Sizes and positions as Int64 expressions; Reads where only the run knows them.
std::optional<std::vector<ir::Expr>> size_argument(const NodeView& view,
                                                   const std::string& attribute, int input);
std::optional<std::vector<ir::Expr>> size_argument(const LowerContext& context,
                                                   const std::string& attribute, int input);
// A number as an expression of dtype `dtype`.
std::optional<ir::Expr> scalar_argument(const LowerContext& context, const std::string& attribute,
                                        int input, DType dtype);

// The element type that an attribute names by its ONNX number; `fallback` where it is absent.
// UserError for types that RedFuser does not have.
DType type_argument(const NodeView& view, const std::string& attribute, DType fallback);
// Refuses constant indices of input `input` that are out of range; element j is one into a
// dimension of sizes[j % sizes.size()] elements.
void check_indices(const NodeView& view, int input, std::span<const ir::Expr> sizes);
// All elements of input `input`, as indices into `size` elements, from -size on.
Positions index_positions(const LowerContext& context, int input, ir::Expr size);
// The same of tuples of indices, the last dimension of the input, into as many dimensions.
std::vector<Positions> tuple_positions(const LowerContext& context, int input,
                                       std::span<const ir::Expr> sizes);

// The only element of a scalar or one-element input, in an expression that serves shape rules (its
// own Read where the run alone knows it) and in one that serves lowerings.
ir::Expr only_element(const NodeView& view, int input);
ir::Expr only_element(const LowerContext& context, int input);

}  // namespace redfuser::ops
