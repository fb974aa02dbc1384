// The choice between a kernel that makes the rows of a cascade in every block of the product that
// reads them, and the two steps apart. Internal to JoinedSteps.
#pragma once

#include <vector>

#include "codegen/core/kernel_config.h"

namespace redfuser::codegen {

// The name in place of a family, of a step that the product after it computes.
inline constexpr const char* kThinRowsStep = "in_product";

// Whether the steps have a thin_rows_form, of which some class of rows fits.
bool has_thin_rows(const ir::Graph& graph, const fuse::Plan& plan, const fuse::Step& rows,
                   const fuse::Step& product, const Target& target);

// Both steps: their offers are the kernel, and "apart". Of open rows, each class of them has the
// faster one.
GpuStep generate_joined(const ir::Graph& graph, const fuse::Plan& plan, const fuse::Step& rows,
                        const fuse::Step& product, const Target& target, const KnownSizes& sizes,
                        const LeftOut& left_out);
// By a configuration of the kernel for its class, or by the rows' default and a choice of the
// product.
GpuStep generate_joined(const ir::Graph& graph, const fuse::Plan& plan, const fuse::Step& rows,
                        const fuse::Step& product, const Target& target,
                        const KernelConfig& choice);
// The choices at these sizes, that of generate_joined first. Those of the product stand for the
// steps apart.
std::vector<Candidate> joined_configs(const ir::Graph& graph, const fuse::Plan& plan,
                                      const fuse::Step& rows, const fuse::Step& product,
                                      const Target& target, std::span<const int64_t> symbols,
                                      const LeftOut& left_out);

}  // namespace redfuser::codegen
