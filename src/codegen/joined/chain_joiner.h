// A kernel of two chained products, or the two steps apart.
#pragma once

#include <memory>

#include "codegen/joined/joiner.h"

namespace redfuser::codegen {

// The name in place of a family, of a product that the one after it computes.
inline constexpr const char* kChainStep = "in_chain";

// Whether the products have a chain_form, of which some class of rows has a kernel that may be
// faster.
bool has_chain(const ir::Graph& graph, const fuse::Plan& plan, const fuse::Step& first,
               const fuse::Step& second, const Target& target);

// Its choices are the configurations of the kernel for classes of rows, and "apart".
std::unique_ptr<Joiner> chain_joiner(const ir::Graph& graph, const fuse::Plan& plan,
                                     const fuse::Step& first, const fuse::Step& second,
                                     const Target& target, const KnownSizes& sizes,
                                     const LeftOut& left_out);

}  // namespace redfuser::codegen
