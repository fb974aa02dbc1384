// A session on a GPU whose program is cut where sizes become known in a run (ProgramParts).
#pragma once

#include "runtime/gpu/executor.h"

namespace redfuser::runtime {

// The parts run one after the other on one stream; each has its memory, shapes and CUDA graphs as a
// program of its own. What one part writes, the next ones read in place. Between two parts the
// values that decide sizes are copied to the host, and the sizes are bound as on the CPU.
class PartsExecutor : public Executor {
 public:
  PartsExecutor(std::shared_ptr<const CompiledProgram> program, const SessionOptions& options);

  NamedTensors run(const NamedTensors& inputs) override;
  NamedDeviceTensors enqueue(const NamedDeviceTensors& inputs, const NamedDeviceTensors& outputs,
                             void* stream) override;
  // UserError: the run waits for the host.
  DeviceTiming time_on_device(const NamedTensors& inputs, double budget_s) override;
  NamedDeviceTensors to_device(const NamedTensors& tensors) override;
  NamedTensors to_host(const NamedDeviceTensors& tensors) override;
  DeviceTensor allocate(DType dtype, const Dims& dims) override;
  void copy_positions(const DeviceTensor& from, int64_t axis, int64_t begin,
                      const DeviceTensor& to) override;
  void* stream() const override { return first().stream(); }
  void order(void* before, void* after) override { first().order(before, after); }
  void synchronize() override { first().synchronize(); }
  // The spans of the parts added up.
  std::optional<RunTiming> run_timing() const override;
  std::optional<DeviceState> device_state() const override { return first().device_state(); }
  std::vector<StepFacts> step_facts() const override;

 private:
  GpuExecutor& first() const { return *executors_.front(); }
  void begin_run();
  // Runs every part; `run_part` runs one on the tensors of its inputs' names, and returns its
  // outputs. `fetch` returns a tensor in host memory.
  template <typename Named, typename RunPart, typename Fetch>
  Named run_parts(Named tensors, const RunPart& run_part, const Fetch& fetch);
  // Binds the sizes that the nodes behind a part have, in `symbols`. Of values with many elements
  // the sizes suffice.
  template <typename Named, typename Fetch>
  void bind_sizes(const ProgramPart& part, const Named& tensors, std::vector<int64_t>& symbols,
                  const Fetch& fetch);
  void take_results(size_t part);

  const std::shared_ptr<const CompiledProgram> whole_;
  const std::vector<ProgramPart>& parts_;
  std::vector<std::unique_ptr<GpuExecutor>> executors_;  // by part
  ThreadPool host_{1};
};

}  // namespace redfuser::runtime
