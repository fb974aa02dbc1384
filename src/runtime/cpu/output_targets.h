// The caller's memory that a run on the CPU writes outputs to.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "redfuser/redfuser.h"
#include "runtime/program/compiled_program.h"

namespace redfuser::runtime {

// By ValueId, the memory that steps write to so that outputs arrive in `memory` (by output):
// defined for the values that outputs are, or are aliases of. Left out, to be copied after the run,
// are inputs, constants, and memory that overlaps an input, unless the output may be written in its
// place and `in_place` allows that. `values` are the inputs (by ValueId), `symbols` the bound
// sizes. UserError as from check_names and, where sizes are known, from check_memory.
std::vector<Tensor> output_targets(const CompiledProgram& program, const NamedTensors& memory,
                                   std::span<const Tensor> values, std::span<const int64_t> symbols,
                                   bool in_place);

}  // namespace redfuser::runtime
