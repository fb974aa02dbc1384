// Outputs that overwrite inputs.
#pragma once

#include "runtime/program/compiled_program.h"

namespace redfuser::runtime {

// True if `output` may overwrite `input`, of the same dtype and sizes: the step that writes it
// reads the input only at the element that it writes (or copies it and scatters into the copy), and
// nothing reads the input afterwards.
bool may_write_in_place(const CompiledProgram& program, ir::ValueId output, ir::ValueId input);

}  // namespace redfuser::runtime
