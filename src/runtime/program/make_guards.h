// The choice of positions that a run checks, and when.
#pragma once

#include "runtime/program/compiled_program.h"

namespace redfuser::runtime {

// Sets the guards of a program with a plan.
void make_guards(CompiledProgram& program);

}  // namespace redfuser::runtime
