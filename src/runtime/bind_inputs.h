// Checking a run's inputs and binding the symbols of their shapes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "redfuser/redfuser.h"
#include "runtime/compiled_program.h"

namespace redfuser {

// Puts every graph input into values[] (by ValueId) and every symbol of an input's shape into
// symbols[] (by number, -1 where unbound). UserError, naming the input, for one that is missing or
// unknown, or has another dtype, rank or size; a contradiction names where the symbol was bound.
void bind_inputs(const CompiledProgram& program, const NamedTensors& inputs,
                 std::span<Tensor> values, std::vector<int64_t>& symbols);

}  // namespace redfuser
