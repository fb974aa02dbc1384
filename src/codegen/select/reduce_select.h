// Plain reductions as rows.
#pragma once

#include <string>
#include <variant>

#include "codegen/core/step_builder.h"
#include "codegen/functor/flat_streaming.h"

namespace redfuser::codegen {

// The rows of a reduction that the row kernels compute better than a thread for each result does;
// of others the reason: products, nested windows, few elements that lie beside their neighbours'.
std::variant<FlatStreaming, std::string> rows_of(StepBuilder& builder,
                                                 const fuse::ReduceStep& step);

}  // namespace redfuser::codegen
