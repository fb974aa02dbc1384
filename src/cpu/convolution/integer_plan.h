// Convolutions of 8-bit integers (ConvInteger) and what follows them element by element.
#pragma once

#include <span>

#include "cpu/steps/step_form.h"

namespace redfuser::cpu {

// Of a step with an epilogue whose node is such a convolution; empty for others.
std::span<const Family> integer_convolution_families(const ir::Graph& graph,
                                                     const fuse::OpaqueStep& step);

}  // namespace redfuser::cpu
