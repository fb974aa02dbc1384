// Rows by several passes: any streaming form, one scalar or rank per pass.
#pragma once

#include "codegen/functor/flat_streaming.h"

namespace redfuser::codegen {

// Adds a kernel for every class of lengths that the form's rows may have.
void add_multi_pass(StepBuilder& builder, const FlatStreaming& form);

// Estimated microseconds at the builder's sizes.
double multi_pass_time(StepBuilder& builder, const FlatStreaming& form);

}  // namespace redfuser::codegen
