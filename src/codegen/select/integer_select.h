// Products of 8-bit integers: by the tensor cores, or by a sum for each result.
#pragma once

#include "codegen/integer_product/integer_config.h"

namespace redfuser::codegen {

// Adds the calls of the family with the least time, and the offers of all.
void choose_integer_product(StepBuilder& builder, const fuse::ProductStep& step);

// Its calls by that configuration of product_integer.
void generate_integer_product(StepBuilder& builder, const fuse::ProductStep& step,
                              const KernelConfig& choice);

// As kernel_configs: of product_integer and of reductions.
std::vector<Candidate> integer_configs(StepBuilder& builder, const fuse::ProductStep& step);

}  // namespace redfuser::codegen
