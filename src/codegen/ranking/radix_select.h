// Rows sorted whole, by several blocks each: for results that a block's memory does not hold.
#pragma once

#include <optional>
#include <string>

#include "codegen/core/kernel_config.h"
#include "codegen/functor/flat_streaming.h"

namespace redfuser::codegen {

inline constexpr const char* kSortFamily = "sort";

// Why rows of the form are not sorted; nullopt if they are.
std::optional<std::string> sort_refusal(const FlatStreaming& form);
// The choice with its time; none of sizes that are not known.
std::vector<Candidate> sort_configs(StepBuilder& builder, const FlatStreaming& form);
// Adds the kernels that sort the rows of such a form, and returns the scratch buffer of the
// positions, uint32, in the order of each row; outputs of the form are not read.
int64_t add_sorted_positions(StepBuilder& builder, const FlatStreaming& form);
// Adds the kernels of a form that is not refused, for all sizes.
void add_sort(StepBuilder& builder, const FlatStreaming& form);

}  // namespace redfuser::codegen
