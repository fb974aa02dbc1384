// Chooses the kernels of steps by measurement: SessionOptions::tune.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cuda/choice_cache.h"
#include "runtime/gpu/bound_program.h"
#include "runtime/gpu/kernel_timer.h"
#include "runtime/gpu/loader.h"
#include "runtime/gpu/tuning_task.h"

namespace redfuser::runtime {

// The forms of all steps for some sizes, and what was found for those with something to choose.
struct TunedSteps {
  LoadedSteps steps;
  std::vector<StepTuning> tunings;
};

// Of one session. What it has found serves every step and every shape with an equal task.
class KernelTuner {
 public:
  KernelTuner(const GpuProgram& program, const SessionOptions& options);

  // True if none of the tasks has to be measured; looks them up in the cache.
  bool knows(const std::vector<TuningTask>& tasks);

  // Runs all steps of `shape`, whose inputs are in place and whose forms are the default's, and
  // measures the tasks that are not known. A candidate that does not compile, load or launch is
  // left out, with a note. At most `room` bytes of GPU memory are taken, until it returns.
  void measure(const std::vector<TuningTask>& tasks, const BoundProgram& shape,
               const cuda::Stream& stream, cuda::DevicePointer workspace, int64_t room);

  // The forms that were found. Requires that the tasks are known.
  TunedSteps tuned(const std::vector<TuningTask>& tasks);

  // What the user may want to know since the last call.
  std::vector<std::string> take_notes();

 private:
  struct Finding {
    cuda::MeasuredChoice measured;
    size_t step = 0;  // that it was measured for; none of the program's if an earlier session did
  };
  struct Form {
    const codegen::KernelConfig* choice;
    std::shared_ptr<const LoadedStep> step;
  };
  using Wanted = std::vector<std::pair<size_t, const codegen::KernelConfig*>>;  // by step

  std::vector<LoadedGpuStep> load(const Wanted& wanted);
  void measure(const TuningTask& task, std::vector<Form> forms, const BoundProgram& shape,
               const KernelTimer& timer, const cuda::Stream& stream, cuda::DevicePointer workspace,
               int64_t room);
  void note_failure(size_t step, const codegen::KernelConfig& choice,
                    const std::exception_ptr& error);
  const std::string& label(size_t step) const { return program_.compiled().steps[step].label; }

  const GpuProgram& program_;
  KernelLoader loader_;
  cuda::ChoiceCache cache_;
  std::map<std::string, Finding> findings_;  // by task
  // Other forms than the default's, by step and choice.
  std::map<std::pair<size_t, std::string>, std::shared_ptr<const LoadedStep>> forms_;
  std::vector<std::string> notes_;
  size_t cache_warnings_ = 0;  // that are among the notes
};

}  // namespace redfuser::runtime
