// Chooses the kernels of steps by measurement: SessionOptions::tune.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cuda/choice_cache.h"
#include "runtime/gpu/bound/bound_program.h"
#include "runtime/gpu/kernel_timer.h"
#include "runtime/gpu/tuning_task.h"
#include "runtime/load/loader.h"

namespace redfuser::runtime {

// The steps for some sizes, and the measurements of those with several choices.
struct TunedSteps {
  LoadedSteps steps;
  std::vector<StepTuning> tunings;
};

// The tuner of a session. A measurement applies to every step and shape with an equal task.
class KernelTuner {
 public:
  KernelTuner(const GpuProgram& program, const SessionOptions& options);

  // True if all tasks have been measured, here or by an entry of the cache.
  bool knows(const std::vector<TuningTask>& tasks);

  // Runs all steps of `shape`, which has its inputs and the default choices, and measures the
  // unknown tasks. A candidate that does not compile, load or launch is skipped with a note. Takes
  // at most `room` bytes of GPU memory until it returns. StepFailure where a default does not
  // launch.
  void measure(const std::vector<TuningTask>& tasks, const BoundProgram& shape,
               const cuda::Stream& stream, cuda::DevicePointer workspace, int64_t room);

  // The default steps with the measured choices. Requires knows(tasks).
  TunedSteps tuned(const std::vector<TuningTask>& tasks, LoadedSteps defaults);

  // Remarks for the user since the last call.
  std::vector<std::string> take_notes();

 private:
  struct Finding {
    cuda::MeasuredChoice measured;
    size_t step = 0;  // that it was measured for; out of range if an earlier session measured it
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
  // What was chosen by an earlier session does not load.
  void keep_default(size_t step, const codegen::KernelConfig& choice,
                    const std::exception_ptr& error, std::vector<StepTuning>& tunings);
  const std::string& label(size_t step) const { return program_.compiled().steps[step].label; }

  const GpuProgram& program_;
  KernelLoader loader_;
  cuda::ChoiceCache cache_;
  std::map<std::string, Finding> findings_;  // by task
  // Steps with other choices than the default, by step and choice.
  std::map<std::pair<size_t, std::string>, std::shared_ptr<const LoadedStep>> forms_;
  std::vector<std::string> notes_;
  size_t cache_warnings_ = 0;  // that are in the notes already
};

}  // namespace redfuser::runtime
