// Rows by several passes: any streaming form, one number or rank after the other.
#pragma once

#include "codegen/rows/flat_streaming.h"

namespace redfuser::codegen {

// Adds a kernel for every class of lengths that the form's rows may have.
void add_multi_pass(StepBuilder& builder, const FlatStreaming& form);

// Microseconds at the builder's sizes, by estimate.
double multi_pass_time(StepBuilder& builder, const FlatStreaming& form);

}  // namespace redfuser::codegen
