// The text of a ranking kernel.
#pragma once

#include "codegen/ranking/ranking_form.h"

namespace redfuser::codegen {

// The kernel of a configuration. `segment`, for Segments: elements of one, a multiple of a tile.
// `length`: rows are at most so long; -1 for any length.
KernelLaunch ranking_kernel(StepBuilder& builder, const RankingForm& form,
                            const RankingConfig& config, ir::Expr segment, int64_t length);

}  // namespace redfuser::codegen
