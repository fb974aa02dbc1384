// How much memory a step has to touch.
#pragma once

#include <span>

#include "runtime/program/compiled_program.h"

namespace redfuser::runtime {

// Bytes of the elements that the step reads and writes, each counted once, for sizes by symbol
// number. 0 where data decides which elements are read, for operators without an expression, and
// for steps that move nothing.
int64_t step_bytes(const CompiledProgram& program, size_t step, std::span<const int64_t> symbols);

}  // namespace redfuser::runtime
