// Scales around a product of 8-bit floats, which the product library multiplies in.
#pragma once

#include <optional>
#include <vector>

#include "codegen/core/step_builder.h"

namespace redfuser::codegen {

// product · Π row factors · Π column factors: the former are free of the columns' axes, the latter
// of the rows'. The order of the factors is the library's.
struct LineScales {
  ir::Expr row = nullptr, column = nullptr;  // fp32; null for 1
  bool one = true;                           // the product has one factor for all elements
};

// nullopt if the term, without casts between floats, is something else.
std::optional<LineScales> line_scales(ir::ExprPool& pool, ir::Expr term, ir::Expr product,
                                      const std::vector<ir::Expr>& rows,
                                      const std::vector<ir::Expr>& columns);

}  // namespace redfuser::codegen
