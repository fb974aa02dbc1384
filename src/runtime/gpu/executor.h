// A session on a GPU: one stream, one arena, and the prepared calls of the last few shapes.
#pragma once

#include <list>
#include <vector>

#include "runtime/gpu/bound/bound_program.h"
#include "runtime/gpu/host_run.h"
#include "runtime/gpu/run_timer.h"
#include "runtime/gpu/tuner.h"
#include "runtime/program/executor.h"
#include "runtime/program/sizes/growing_symbols.h"

namespace redfuser::runtime {

// A shape's first run enqueues its calls; the second records them in a CUDA graph, which later runs
// replay. Other addresses change the arguments of its kernels. So do other sizes where the runs
// grow, such as those of a growing state: they share one shape, with memory for the greatest of
// their length class. At most SessionOptions::kept_shapes are kept; the least recently used one is
// dropped. Nothing is allocated on the GPU after the first run of the largest shape. Programs with
// steps on the host are enqueued step by step in every run.
class GpuExecutor : public Executor {
 public:
  GpuExecutor(std::shared_ptr<const CompiledProgram> program, const SessionOptions& options);
  ~GpuExecutor() override;

  NamedTensors run(const NamedTensors& inputs) override;
  NamedDeviceTensors enqueue(const NamedDeviceTensors& inputs, const NamedDeviceTensors& outputs,
                             void* stream) override;
  void prepare(const NamedDeviceTensors& inputs, const NamedDeviceTensors& outputs) override;
  DeviceTiming time_on_device(const NamedTensors& inputs, double budget_s) override;
  NamedDeviceTensors to_device(const NamedTensors& tensors) override;
  NamedTensors to_host(const NamedDeviceTensors& tensors) override;
  DeviceTensor allocate(DType dtype, const Dims& dims) override;
  void copy_positions(const DeviceTensor& from, int64_t axis, int64_t begin,
                      const DeviceTensor& to) override;
  bool appends(const std::string& past, const std::string& present) const override;
  void* stream() const override { return stream_.handle(); }
  void order(void* before, void* after) override;
  void synchronize() override;
  std::optional<RunTiming> run_timing() const override { return timer_.result(); }
  std::optional<DeviceState> device_state() const override;
  std::vector<StepFacts> step_facts() const override;

  const GpuProgram& program() const { return *program_; }
  // The values of CompiledProgram::outer_symbols in the next run.
  void take_outer_symbols(std::vector<int64_t> symbols) { outer_symbols_ = std::move(symbols); }
  // The sizes by symbol of the last run, with those that its steps have bound; -1: not bound.
  const std::vector<int64_t>& symbols() const { return symbols_; }

 private:
  struct Key {
    std::vector<int64_t> symbols;  // of the greatest run
    std::vector<bool> grows;       // by symbol; empty where all runs have these sizes
    bool keep_all = false;
    std::vector<ir::ValueId> elsewhere;
    bool operator==(const Key&) const = default;
  };

  // Checks inputs and sizes.
  void bind_sizes(const NamedTensors& inputs);
  bool appends_to(ir::ValueId past, ir::ValueId present) const;
  // The sizes of memory with room, and what this run appends to it.
  void bind_rooms(const NamedDeviceTensors& inputs, const NamedDeviceTensors& outputs);
  // Checks the positions that depend on inputs in host memory alone.
  void check_positions(const std::function<bool(ir::ValueId)>& on_host);
  // Enqueues the copies of the run's inputs into a shape's memory.
  using InputCopy = std::function<void(const BoundProgram&)>;
  struct BoundRun {
    Addresses addresses;
    BoundProgram* shape;
  };
  // A run that is bound before it is enqueued, until another one is.
  struct PreparedRun {
    BoundRun run;
    NamedDeviceTensors inputs, outputs;  // without their owners
    bool keeps;                          // keeps_any()
  };
  // The memory and the calls of a run. `copy_inputs` is for tuning.
  BoundRun bind_run(const NamedDeviceTensors& inputs, const NamedDeviceTensors& outputs,
                    const cuda::Stream& stream, const InputCopy& copy_inputs);
  bool is_prepared(const NamedDeviceTensors& inputs, const NamedDeviceTensors& outputs) const;
  BoundProgram& shape_for(const Addresses& addresses, const InputCopy& copy_inputs);
  // The shape of the runs that grow which has this one; null where there is none yet, or no room.
  BoundProgram* growing_shape(Key key, const Addresses& addresses, const InputCopy& copy_inputs);
  BoundProgram* known_shape(const Key& key, const Addresses& addresses);
  BoundProgram& add_shape(Key key, TunedSteps forms, const Addresses& addresses);
  // The steps for the current sizes; measures tasks without a known choice.
  TunedSteps tune(const InputCopy& copy_inputs);
  void reserve(int64_t arena_bytes);
  BoundProgram& bind(const NamedTensors& inputs);
  void upload(const BoundProgram& shape);
  void enqueue_all(BoundProgram& shape, const cuda::Stream& stream);
  void begin_host_run();
  // Enqueues a step, by its next offer where the driver refuses a launch. Steps of the host are
  // computed at once. `early` as BoundProgram::enqueue.
  void enqueue_step(BoundProgram& shape, size_t step, const cuda::Stream& stream,
                    bool early = false);
  // Waits for the stream where steps [begin, end) have found sizes, and binds these; whether there
  // are any. After the steps that the run has enqueued.
  bool take_sizes(const BoundProgram& shape, size_t begin, size_t end, const cuda::Stream& stream);
  void replace(BoundProgram& shape, const StepFailure& failure);
  // Replaces the default form of the step.
  void replace_default(const StepFailure& failure);
  // Enqueues the calls, or their CUDA graph.
  void launch(BoundProgram& shape, const cuda::Stream& stream);
  // Prepares the next run of the shape while the GPU computes this one, as it is if the sizes go on
  // growing by as much and memory outside of the session changes places.
  void foresee(Addresses addresses);
  void run_steps(BoundProgram& shape);
  // Copies the inputs, runs, and keeps the time of every call.
  void profile_steps(BoundProgram& shape, const cuda::Stream& stream, const InputCopy& copy_inputs);
  void keep_times(const BoundProgram& shape, const std::vector<cuda::Event>& events);
  // Passes the values of the step to on_value.
  void show(const BoundProgram& shape, size_t number);
  Tensor fetch(const BoundProgram& shape, ir::ValueId value);
  NamedTensors outputs(const BoundProgram& shape);
  // Page-locked memory that no copy reads any more; null for more bytes than are worth it.
  char* staging(int64_t bytes);
  std::vector<const void*> stage(const std::vector<const DeviceTensor*>& inputs);
  const ir::Value& value_of(ir::ValueId id) const { return graph_.values[static_cast<size_t>(id)]; }
  void check_not_ours(const NamedDeviceTensors& tensors) const;
  // Whether the value's size does not depend on what steps still have to find.
  bool has_size(ir::ValueId value) const;
  // `outputs` are those `given`, by the graph's outputs; null where there is none. Those whose
  // sizes are not known yet are not checked.
  void check_outputs(const NamedDeviceTensors& given,
                     const std::vector<const DeviceTensor*>& outputs) const;
  void check_output(ir::ValueId output, const DeviceTensor& given) const;
  // Of the graph's inputs and, as above, its outputs.
  Addresses addresses_of(const std::vector<const DeviceTensor*>& inputs,
                         const std::vector<const DeviceTensor*>& outputs) const;
  DeviceTensor deliver(const BoundProgram& shape, ir::ValueId value, const DeviceTensor* given,
                       const cuda::Stream& stream) const;

  std::shared_ptr<const CompiledProgram> compiled_;
  std::shared_ptr<const GpuProgram> program_;
  const SessionOptions options_;
  LoadedSteps steps_;  // the program's, but for those whose kernels do not launch
  const ir::Graph& graph_;
  int64_t memory_limit_;
  size_t kept_shapes_;
  cuda::Stream stream_;
  GrowingSymbols growing_;
  std::vector<bool> appended_;  // symbols that this run grows in memory with room; empty: none
  std::vector<int64_t> last_symbols_;  // of the run before, as its addresses
  Addresses last_addresses_;
  cuda::Event ordered_;  // of order()
  cuda::Event staged_;   // after the copies of the last enqueued run's inputs
  cuda::Buffer workspace_, arena_;
  cuda::Buffer counter_;  // 0 between launches
  cuda::HostBuffer staging_;
  cuda::HostBuffer found_;                          // sizes that steps have found
  std::unique_ptr<KernelTuner> tuner_;              // null: default choices
  std::list<std::pair<Key, BoundProgram>> shapes_;  // the latest first
  std::optional<PreparedRun> prepared_;
  // Of the current run, or the prepared one.
  std::vector<Tensor> values_;  // by ValueId: inputs
  std::vector<int64_t> symbols_, outer_symbols_;
  std::optional<std::vector<int64_t>> passed_sizes_;  // at which fixed guards passed last
  ThreadPool host_{1};
  RunTimer timer_;
  std::unique_ptr<HostRun> host_run_;  // null where the GPU computes every step
};

}  // namespace redfuser::runtime
