// Which ranking kernels compute a form.
#pragma once

#include <vector>

#include "codegen/ranking/ranking_form.h"

namespace redfuser::codegen {

KernelConfig choice_of(const RankingConfig& config);

// False if rows of some of the sizes that are known at run time only would have no kernel.
bool ranking_serves(StepBuilder& builder, const FlatStreaming& form);

// As kernel_configs.
std::vector<Candidate> ranking_configs(StepBuilder& builder, const FlatStreaming& form,
                                       const KnownSizes& sizes);

// Adds the kernels of a form that is not refused: by default, or by one of its choices, which
// leaves what it does not serve to the default.
void add_ranking(StepBuilder& builder, const FlatStreaming& form);
void add_ranking(StepBuilder& builder, const FlatStreaming& form, const KernelConfig& choice);

}  // namespace redfuser::codegen
