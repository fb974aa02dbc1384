// Which positions a run looks at, and when.
#pragma once

#include "runtime/program/compiled_program.h"

namespace redfuser::runtime {

// Fills in the guards of a program that has its plan.
void make_guards(CompiledProgram& program);

}  // namespace redfuser::runtime
