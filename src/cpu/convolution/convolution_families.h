// The families of convolutions: by windows of the image, by a matrix of columns, channel by
// channel.
#pragma once

#include <span>
#include <vector>

#include "cpu/steps/step_form.h"

namespace redfuser::cpu {

// Those of the node's operator; empty where it has none but its own kernel.
std::span<const Family> convolution_families(const ir::Node& node);

std::vector<int64_t> symbols_of(const ir::Graph& graph, const fuse::OpaqueStep& step);

}  // namespace redfuser::cpu
