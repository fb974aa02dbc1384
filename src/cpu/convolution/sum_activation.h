// The part of an epilogue that kernels compute of each sum in registers.
#pragma once

#include <functional>
#include <vector>

#include "cpu/simd/kernel_table.h"
#include "ir/graph.h"

namespace redfuser::cpu {

struct SumActivation {
  Activation each;                     // `any` is false where the body is another function
  ir::ValueId residual = ir::kAbsent;  // the tensor that it adds
};

// Of a body over one Leaf Product of its own type, which is an affine function of the sum s within
// bounds, or 1 / (1 + e^-t) of one, or the product of s and such a function. s is the leaf, or the
// leaf plus the element at `indices` of a tensor for which `has_layout`: its elements lie where the
// body's results do.
SumActivation activation_of(ir::Expr body, const std::vector<ir::Expr>& indices,
                            const std::function<bool(ir::ValueId)>& has_layout);

}  // namespace redfuser::cpu
