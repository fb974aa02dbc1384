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

// The states that have memory among the tensors of Session::enqueue. UserError for an output that
// has no room or other memory than a state's.
std::vector<GrowingState> growing_states(const ir::Graph& graph, const NamedDeviceTensors& inputs,
                                         const NamedDeviceTensors& outputs);

struct GrowingProgram {
  cpu::GrowingSizes sizes;
  struct Step {
    // Null for a step that reads and writes nothing that grows, and for an alias.
    std::shared_ptr<const cpu::StepPlan> plan;
    // It has no plan for growing sizes: a run copies what it reads out of the memory with room, and
    // what it writes there.
    bool packed = false;
    // By guard of the step: PositionGuard::growing_form.
    std::vector<std::shared_ptr<const cpu::StepPlan>> guards = {};
  };
  std::vector<Step> steps;
};

// The sizes of runs with these symbols in which those that `grows` (by symbol) grow with symbol
// `length`. The greatest length is that at which `positions` of this run is a power of two, as far
// as there is room, so that a plan does not depend on the room that longer runs have left.
cpu::GrowingSizes growing_sizes(const std::vector<GrowingState>& states,
                                const std::vector<int64_t>& symbols, const std::vector<bool>& grows,
                                size_t length, int64_t positions);

// Of the states, those are appended to of which that is proved; the others are written anew. Null
// where a step that appends has no plan.
std::shared_ptr<const GrowingProgram> make_growing_program(const CompiledProgram& program,
                                                           const std::vector<GrowingState>& states,
                                                           cpu::GrowingSizes sizes, int threads);

}  // namespace redfuser::runtime
