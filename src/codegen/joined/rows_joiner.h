// A kernel that makes the rows of a cascade in every block of the product that reads them, or the
// two steps apart.
#pragma once

#include <memory>

#include "codegen/joined/joiner.h"

namespace redfuser::codegen {

// The name in place of a family, of a step that the product after it computes.
inline constexpr const char* kThinRowsStep = "in_product";

// Whether the steps have a thin_rows_form, of which some class of rows fits.
bool has_thin_rows(const ir::Graph& graph, const fuse::Plan& plan, const fuse::Step& rows,
                   const fuse::Step& product, const Target& target);

// Its choices are the configurations of the kernel for classes of rows, and those of the product,
// which stand for the steps apart with the rows' default.
std::unique_ptr<Joiner> rows_joiner(const ir::Graph& graph, const fuse::Plan& plan,
                                    const fuse::Step& rows, const fuse::Step& product,
                                    const Target& target, const KnownSizes& sizes,
                                    const LeftOut& left_out);

}  // namespace redfuser::codegen
