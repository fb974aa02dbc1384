// A step of a plan becomes kernels and library calls: by the default choice, or by a given one.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "codegen/core/kernel_config.h"

namespace redfuser::codegen {

// The device form of a step. Throws UserError naming the user's node if there is none.
GpuStep generate(const ir::Graph& graph, const fuse::Step& step, const Target& target);

// The same, with the time that it takes at these sizes by estimate, and without what is left out.
GpuStep generate(const ir::Graph& graph, const fuse::Step& step, const Target& target,
                 const KnownSizes& sizes, const LeftOut& left_out = {});

// The choices for a step at these sizes, that of generate(graph, step, target) first, the others in
// order of estimated time; empty where there is nothing to choose.
std::vector<Candidate> kernel_configs(const ir::Graph& graph, const fuse::Step& step,
                                      const Target& target, std::span<const int64_t> symbols,
                                      const LeftOut& left_out = {});

// The offers of a step's device form for all sizes, with the times and configurations at some:
// that of the form first, whatever is best there.
std::vector<Offer> offers_at(const ir::Graph& graph, const fuse::Step& step, const Target& target,
                             const KnownSizes& sizes, const GpuStep& form);

// The device form by one of them, for these sizes or others.
GpuStep generate(const ir::Graph& graph, const fuse::Step& step, const Target& target,
                 const KernelConfig& choice);

// Whether kernels are written for this operator of the domain (empty: ai.onnx), which has no
// lowering. Some of its forms may have none: the step's error names them.
bool has_own_kernels(std::string_view domain, std::string_view name);

}  // namespace redfuser::codegen
