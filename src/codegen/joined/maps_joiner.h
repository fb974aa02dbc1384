// One kernel of several maps that do not depend on each other, or a launch for each.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "codegen/joined/joiner.h"

namespace redfuser::codegen {

// The name in place of a family, of a step that a later one computes beside its own.
inline constexpr const char* kMapsStep = "in_maps";

// Bytes of the kernel arguments of a map; nullopt for other steps, and for a map without a kernel.
std::optional<int64_t> map_arguments(const ir::Graph& graph, const fuse::Step& step,
                                     const Target& target);

// `steps` are maps. The choices are the kernel and "apart".
std::unique_ptr<Joiner> maps_joiner(const ir::Graph& graph, std::vector<const fuse::Step*> steps,
                                    const Target& target, const KnownSizes& sizes,
                                    const LeftOut& left_out);

}  // namespace redfuser::codegen
