// Which family folds rows: by whether the elements of a row or the rows themselves are adjacent in
// memory.
#pragma once

#include <vector>

#include "codegen/core/kernel_config.h"
#include "codegen/functor/flat_streaming.h"

namespace redfuser::codegen {

// The kernels of a form that folds(): of the default, or of a choice.
void add_row_folds(StepBuilder& builder, const FlatStreaming& form);
void add_row_folds(StepBuilder& builder, const FlatStreaming& form, const KernelConfig& choice);
// As kernel_configs; empty for a form that does not fold.
std::vector<Candidate> row_fold_configs(StepBuilder& builder, const FlatStreaming& form,
                                        const KnownSizes& sizes);

}  // namespace redfuser::codegen
