// Checking a run's inputs and binding the symbols of their shapes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "redfuser/redfuser.h"
#include "runtime/program/compiled_program.h"

namespace redfuser::runtime {

// Stores every graph input in values[] (by ValueId) and every symbol of an input's shape in
// symbols[] (by number, -1 if unbound). UserError, naming the input, for one that is missing or
// unknown, or has another dtype, rank or size; a contradiction names where the symbol was bound.
// `outer` has the values of CompiledProgram::outer_symbols.
void bind_inputs(const CompiledProgram& program, const NamedTensors& inputs,
                 std::span<Tensor> values, std::vector<int64_t>& symbols,
                 std::span<const int64_t> outer = {});

// Binds the symbols of inputs that are in values[] already, with the same checks but for names.
void bind_sizes(const CompiledProgram& program, std::span<const Tensor> values,
                std::vector<int64_t>& symbols, std::span<const int64_t> outer = {});

// The sizes of the program's outputs for inputs of these sizes. UserError as bind_inputs throws it,
// and for a size that depends on data.
NamedDims output_dims(const CompiledProgram& program, const NamedDims& inputs);

}  // namespace redfuser::runtime
