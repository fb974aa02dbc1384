// The operators, by family; each family is a table in its own file.
#pragma once

#include <span>

#include "ops/op_def.h"

namespace redfuser::ops {

std::span<const OpDef> arithmetic_ops();
std::span<const OpDef> logic_ops();
std::span<const OpDef> function_ops();
std::span<const OpDef> activation_ops();
std::span<const OpDef> conversion_ops();
std::span<const OpDef> reshape_ops();
std::span<const OpDef> concat_ops();
std::span<const OpDef> slice_ops();
std::span<const OpDef> pad_ops();
std::span<const OpDef> repeat_ops();
std::span<const OpDef> gather_ops();
std::span<const OpDef> generator_ops();
std::span<const OpDef> reduction_ops();
std::span<const OpDef> ranking_ops();
std::span<const OpDef> scan_ops();
std::span<const OpDef> normalization_ops();
std::span<const OpDef> matmul_ops();
std::span<const OpDef> gemm_ops();
std::span<const OpDef> einsum_ops();
std::span<const OpDef> quantization_ops();
std::span<const OpDef> window_ops();
std::span<const OpDef> resize_ops();
std::span<const OpDef> grid_ops();
std::span<const OpDef> scatter_ops();
std::span<const OpDef> recurrent_ops();
std::span<const OpDef> sequence_ops();
std::span<const OpDef> string_ops();
std::span<const OpDef> learning_ops();
std::span<const OpDef> image_ops();
std::span<const OpDef> signal_ops();
std::span<const OpDef> random_ops();
std::span<const OpDef> legacy_ops();

}  // namespace redfuser::ops
