// The steps of a program for runs that append to states.
#pragma once

#include <memory>
#include <vector>

#include "cpu/growing/growing_kernel.h"
#include "redfuser/device.h"
#include "runtime/program/compiled_program.h"

namespace redfuser::runtime {

// An input whose memory has room for positions along an axis, to which an output adds some.
struct GrowingState {
  ir::ValueId past, present;
  size_t axis;
  Dims room;
};

// The states among tensors of Session::enqueue. UserError for an output that is none.
std::vector<GrowingState> growing_states(const ir::Graph& graph, const NamedDeviceTensors& inputs,
                                         const NamedDeviceTensors& outputs);

struct GrowingProgram {
  cpu::GrowingSizes sizes;
  // By step; null for a step that reads and writes nothing that grows, and for an alias.
  std::vector<std::shared_ptr<const cpu::StepPlan>> plans;
};

// The sizes of runs with these symbols in which those that `grows` (by symbol) grow with the first
// state's past. The greatest length is the power of two of positions that holds this run's, as far
// as there is room, so that a plan does not depend on the room that longer runs have left.
cpu::GrowingSizes growing_sizes(const CompiledProgram& program,
                                const std::vector<GrowingState>& states,
                                const std::vector<int64_t>& symbols,
                                const std::vector<bool>& grows);

// Null where a state is not appended to, or a step has no plan for growing sizes.
std::shared_ptr<const GrowingProgram> make_growing_program(const CompiledProgram& program,
                                                           const std::vector<GrowingState>& states,
                                                           cpu::GrowingSizes sizes, int threads);

}  // namespace redfuser::runtime
