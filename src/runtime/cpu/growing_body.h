// Runs of a body whose sizes grow from one to the next, such as those of a list that a loop
// extends.
#pragma once

#include <map>
#include <vector>

#include "base/tensors/room.h"
#include "fuse/growing/appends.h"
#include "runtime/cpu/growing_runs.h"
#include "runtime/cpu/plan_run.h"

namespace redfuser::runtime {

// A body's values that grow are in memory with room (base/tensors/room.h), so that one plan serves
// all lengths up to a power of two. An output that continues an input is written behind it, where
// no other value has been. For one PlanRun.
class GrowingBody {
 public:
  GrowingBody(const CompiledProgram& program, int threads);

  // Forgets which sizes grow, so that equal runs that follow give equal bits.
  void restart();
  // Before a run, for which `plan` has the inputs and their sizes. True if it is one of growing
  // sizes: then the plan has the inputs in memory with room.
  bool enter(PlanRun& plan);
  // After such a run: an output's value.
  Tensor leave(PlanRun& plan, ir::ValueId output);

  // The programs that were made.
  int64_t made() const { return runs_.made(); }

 private:
  bool is_steady(const std::vector<int64_t>& symbols);
  std::vector<GrowingState> states_of(PlanRun& plan);
  void place_inputs(PlanRun& plan, const std::vector<GrowingState>& states);
  void place(PlanRun& plan, ir::ValueId input, const Dims& memory);

  const CompiledProgram& program_;
  const ir::Graph& graph_;
  const std::vector<fuse::Continuation> continuations_;
  GrowingRuns runs_;
  bool has_texts_ = false;  // strings, which have no growing memory
  std::vector<int64_t> last_;
  int equal_ = 0;  // runs in succession of the same sizes
  std::shared_ptr<const GrowingProgram> program_of_run_;
  std::map<const void*, std::shared_ptr<Room>> rooms_;  // of the run's inputs, by their memory
};

}  // namespace redfuser::runtime
