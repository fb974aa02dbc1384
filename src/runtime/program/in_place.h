// Outputs in the memory of inputs.
#pragma once

#include "runtime/program/compiled_program.h"

namespace redfuser::runtime {

// True if `output` may be written where `input`, of the same dtype and sizes, lies: the step that
// writes it reads the input at the place that it writes only (or copies it and scatters into the
// copy), and nothing reads the input afterwards.
bool may_write_in_place(const CompiledProgram& program, ir::ValueId output, ir::ValueId input);

}  // namespace redfuser::runtime
