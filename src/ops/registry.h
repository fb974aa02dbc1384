// Every operator.
#pragma once

#include <span>
#include <string_view>

#include "ops/op_def.h"

namespace redfuser::ops {

// The definition that serves opset `version` of `domain`, or null.
const OpDef* find_op(std::string_view domain, std::string_view name, int version);
// Every definition, ordered by domain and name.
std::span<const OpDef> all_ops();

// Channel c (dimension 1) of the node's one output is linear in the elements [c, ...] of input 1,
// plus element c of input 2, which may be absent.
bool has_channel_weights(const ir::Node& node);

// The kernels of the node, an operator without a lowering, also compute what follows its one output
// element by element (fuse::OpaqueStep::Epilogue).
bool takes_epilogue(const ir::Node& node);

// Each element of the node's one output is the largest of some elements of input 0, at least one:
// where f does not decrease, the maxima of f(x) are f of the maxima of x.
bool takes_maxima(const ir::Graph& graph, const ir::Node& node);

}  // namespace redfuser::ops
