// The choices of single-pass row kernels: threads per row, registers or shared memory, clusters and
// segments.
#pragma once

#include <vector>

#include "codegen/rows/single_pass_cost.h"

namespace redfuser::codegen {

// `width`: consecutive elements of a thread, at most row_width().
SinglePassFacts single_pass_facts(StepBuilder& builder, const FlatStreaming& form, int width);

KernelConfig choice_of(const SinglePassConfig& config);
KernelConfig choice_of(const SegmentConfig& config);

// As kernel_configs, for a form that folds().
std::vector<Candidate> single_pass_configs(StepBuilder& builder, const FlatStreaming& form,
                                           const KnownSizes& sizes);

// Adds the kernels of one of them. Lengths beyond its capacity have the default.
void add_fold(StepBuilder& builder, const FlatStreaming& form, const KernelConfig& choice);

// Adds the default kernels of a form that folds(); one or two run at any sizes.
void add_folds(StepBuilder& builder, const FlatStreaming& form);

}  // namespace redfuser::codegen
