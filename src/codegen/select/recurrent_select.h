// Which kernel computes a recurrent layer: by many blocks of a cluster, by some, or by one.
#pragma once

#include "codegen/core/kernel_config.h"
#include "codegen/recurrent/recurrent_form.h"

namespace redfuser::codegen {

// By estimate. UserError, which names the node and the reason, where no kernel takes it.
void choose_recurrent(StepBuilder& builder, const ops::NodeView& view);
bool is_recurrent_family(const std::string& family);
// By one configuration.
void generate_recurrent(StepBuilder& builder, const ops::NodeView& view,
                        const KernelConfig& choice);
// As kernel_configs, for a recurrent layer.
std::vector<Candidate> recurrent_configs(StepBuilder& builder, const ops::NodeView& view);

}  // namespace redfuser::codegen
