// The choices for a fold of rows: threads of a row, where it is kept, clusters and segments.
#pragma once

#include <vector>

#include "codegen/rows/single_pass_cost.h"

namespace redfuser::codegen {

SinglePassFacts single_pass_facts(StepBuilder& builder, const FlatStreaming& form);

KernelConfig choice_of(const SinglePassConfig& config);
KernelConfig choice_of(const SegmentConfig& config);

// As kernel_configs; of a form that folds().
std::vector<Candidate> single_pass_configs(StepBuilder& builder, const FlatStreaming& form,
                                           const KnownSizes& sizes);

// The kernels of one of them. Lengths that it has no room for are left to the default.
void add_fold(StepBuilder& builder, const FlatStreaming& form, const KernelConfig& choice);

// Adds the kernels of a form that folds(): one or two run for any sizes.
void add_folds(StepBuilder& builder, const FlatStreaming& form);

}  // namespace redfuser::codegen
