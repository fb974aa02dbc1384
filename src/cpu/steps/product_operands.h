// The operands of a product in memory, for fixed sizes.
#pragma once

#include <optional>
#include <vector>

#include "cpu/steps/integer_product.h"
#include "cpu/tile/specialize.h"
#include "cpu/tile/tile_builder.h"

namespace redfuser::cpu {

// The axes of a product, specialised.
struct OperandAxes {
  const std::vector<ir::Expr>&batch, &m, &n, &k;
};

// The offset of a Read, with a part for each list. False if it is not a sum of such parts, or may
// be outside the value.
bool separate_read(ir::ExprPool& pool, ir::Expr read, const TileBuilder::DimsOf& dims,
                   const std::vector<std::vector<ir::Expr>>& lists, SeparatedOffset& to);

// The factors and zero points of a step of integers; nullopt if one of them is not a matrix in
// memory.
std::optional<IntegerProduct> separate_integers(const ir::Graph& graph, ir::ExprPool& pool,
                                                Specializer& specializer,
                                                const fuse::ProductStep& step,
                                                const OperandAxes& axes,
                                                const TileBuilder::DimsOf& dims);

}  // namespace redfuser::cpu
