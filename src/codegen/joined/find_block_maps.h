// Maps that the attention which reads them may compute.
#pragma once

#include <vector>

#include "codegen/joined/find_joined.h"
#include "codegen/joined/plan_view.h"

namespace redfuser::codegen {

// Adds groups of maps and an attention; their maps are in no other group.
void take_block_maps(const PlanView& view, std::vector<JoinedGroup>& groups);

}  // namespace redfuser::codegen
