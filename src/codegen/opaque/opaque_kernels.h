// Device forms of operators that have no lowering. Each adds its calls to the builder or throws a
// UserError that names the node.
#pragma once

#include "codegen/core/step_builder.h"
#include "ops/op_def.h"

namespace redfuser {

void generate_conv(StepBuilder& builder, const NodeView& view);
void generate_conv_transpose(StepBuilder& builder, const NodeView& view);
void generate_max_pool(StepBuilder& builder, const NodeView& view);
void generate_average_pool(StepBuilder& builder, const NodeView& view);
void generate_cumsum(StepBuilder& builder, const NodeView& view);
void generate_scatter_elements(StepBuilder& builder, const NodeView& view);
void generate_scatter_nd(StepBuilder& builder, const NodeView& view);

}  // namespace redfuser
