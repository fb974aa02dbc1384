// A kernel of attention and the maps that it reads, or a kernel of maps and one of attention.
#pragma once

#include <memory>
#include <vector>

#include "codegen/joined/joiner.h"

namespace redfuser::codegen {

// The name in place of a family, of a map that the attention after it computes.
inline constexpr const char* kBlockMapsStep = "in_attention";

// Whether the steps, maps and an attention that reads them, have a kernel for some sizes.
bool has_block_maps(const ir::Graph& graph, const std::vector<const fuse::Step*>& steps,
                    const Target& target);

// `steps`: maps, then the attention. The choices are configurations of the kernel, and "apart".
std::unique_ptr<Joiner> block_maps_joiner(const ir::Graph& graph,
                                          std::vector<const fuse::Step*> steps,
                                          const Target& target, const KnownSizes& sizes,
                                          const LeftOut& left_out);

}  // namespace redfuser::codegen
