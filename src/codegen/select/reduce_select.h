// Plain reductions as rows.
#pragma once

#include <optional>

#include "codegen/core/step_builder.h"
#include "codegen/rows/flat_streaming.h"

namespace redfuser::codegen {

// The rows of a reduction that the row kernels compute better than a thread for each result does;
// nullopt for others: products, nested windows, few elements that lie beside their neighbours'.
std::optional<FlatStreaming> rows_of(StepBuilder& builder, const fuse::ReduceStep& step);

}  // namespace redfuser::codegen
