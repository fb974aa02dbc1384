// Outputs that overwrite inputs.
#pragma once

#include <functional>

#include "runtime/program/compiled_program.h"

namespace redfuser::runtime {

// True if `output` may overwrite `input`, of the same dtype and sizes: the step that writes it
// reads the input only at the element that it writes (or copies it and scatters into the copy), and
// nothing reads the input afterwards or at the same time. `place_of` is the step in whose place of
// the plan's order a step is computed; by default it is itself.
bool may_write_in_place(const CompiledProgram& program, ir::ValueId output, ir::ValueId input,
                        const std::function<size_t(size_t)>& place_of = nullptr);

}  // namespace redfuser::runtime
