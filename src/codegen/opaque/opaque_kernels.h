// GPU implementations of operators without a lowering. Each adds its calls to the builder or throws
// a UserError that names the node.
#pragma once

#include "codegen/core/step_builder.h"
#include "ops/op_def.h"

namespace redfuser::codegen {

void generate_compress(StepBuilder& builder, const ops::NodeView& view);
void generate_conv_transpose(StepBuilder& builder, const ops::NodeView& view);
void generate_max_pool(StepBuilder& builder, const ops::NodeView& view);
void generate_lp_pool(StepBuilder& builder, const ops::NodeView& view);
void generate_max_unpool(StepBuilder& builder, const ops::NodeView& view);
void generate_average_pool(StepBuilder& builder, const ops::NodeView& view);
void generate_non_max_suppression(StepBuilder& builder, const ops::NodeView& view);
void generate_nonzero(StepBuilder& builder, const ops::NodeView& view);
void generate_scatter_elements(StepBuilder& builder, const ops::NodeView& view);
void generate_scatter_nd(StepBuilder& builder, const ops::NodeView& view);

}  // namespace redfuser::codegen
