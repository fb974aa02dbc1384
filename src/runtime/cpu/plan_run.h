// One plan's values, and the run of its steps on the CPU.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/memory_pool.h"
#include "base/thread_pool.h"
#include "redfuser/timing.h"
#include "runtime/cpu/growing_program.h"
#include "runtime/cpu/memory_meter.h"
#include "runtime/program/compiled_program.h"
#include "runtime/program/sizes/size_checks.h"

namespace redfuser::runtime {

class CallRun;
class GrowingBody;

// What happens around the steps of a run.
class StepObserver {
 public:
  using Clock = std::chrono::steady_clock;
  virtual ~StepObserver() = default;
  virtual void starting(size_t step) = 0;
  // Before each run of a body within a step; an exception ends the run around it.
  virtual void working() = 0;
  // The step's values are there; they may be replaced by others of the same types and sizes.
  virtual void computed(const fuse::Step& step, std::span<Tensor> values) = 0;
  // Whether ended() is wanted.
  virtual bool times_steps() const = 0;
  // `inner` are the steps inside of the step, with their times in this run added up.
  virtual void ended(size_t step, Clock::time_point start, std::vector<KernelTime> inner) = 0;
};

// For one thread at a time. Threads and bytes are the session's.
class PlanRun {
 public:
  // `tune` as in SessionOptions.
  PlanRun(std::shared_ptr<const CompiledProgram> program, ThreadPool& pool, bool tune);
  ~PlanRun();

  // The values of the graph, for inputs, and the sizes by symbol; both are those of the run until
  // clear() is called.
  std::vector<Tensor>& values() { return values_; }
  std::vector<int64_t>& symbols() { return symbols_; }
  // By ValueId, the memory that the next run writes values to (cpu::RunContext::targets), until
  // clear() is called.
  void set_targets(std::vector<Tensor> targets) { targets_ = std::move(targets); }
  // The next run is of growing sizes, until clear() is called: inputs and targets that grow have
  // the sizes of their memory, and so have the values that steps write.
  void set_growing(std::shared_ptr<const GrowingProgram> growing) { growing_ = std::move(growing); }
  // Clears all values except constants, the targets, and growing sizes.
  void clear();

  // Runs the steps on the inputs that are in values(), with their sizes bound. Bytes of values are
  // bounded by `memory_limit`. UserError for inputs that an operator refuses; NeedsValues where the
  // plan does not serve them.
  void run(int64_t memory_limit, StepObserver* observer);
  // The same for inputs in the graph's order, whose types the program takes: the outputs, in order.
  // `growing` may be null.
  std::vector<Tensor> run(std::span<const Tensor* const> inputs, int64_t memory_limit,
                          StepObserver* observer, GrowingBody* growing);
  // Before the first run of the caller's: bodies within forget which of their sizes grow.
  void restart();

  // The largest number of bytes of values alive at once in the last run.
  int64_t peak() const { return peak_; }
  // The measurements of the steps that several kernels can compute; empty where it does not tune.
  std::vector<StepTuning> tunings() const;
  // What computes each step, as it ran last; empty before the first run.
  std::vector<StepFacts> step_facts(const std::vector<StepTuning>& tunings = {}) const;
  const CompiledProgram& program() const { return *program_; }

 private:
  static size_t index(ir::ValueId id) { return static_cast<size_t>(id); }
  void find_leaving();
  void run_step(size_t number, StepObserver* observer);
  void compute(size_t number, cpu::RunContext& context, StepObserver* observer);
  void check_positions(size_t number, cpu::RunContext& context);
  // Whether the step's fixed guards passed at the current sizes.
  bool passed_at(size_t step) const;
  // Whether the value is written to memory of the caller, which no limit counts.
  bool is_callers(ir::ValueId id) const;
  // The bytes that the step's inner values may take beside its outputs. Throws UserError where the
  // outputs do not fit.
  int64_t room_for(size_t number) const;
  // Bytes of the step's outputs; `known`: of those whose sizes are.
  int64_t outputs_of(const fuse::Step& step, bool& known) const;
  void alias(const fuse::AliasStep& step);
  // The value's sizes in a run of growing sizes: those of its memory.
  Dims memory_of(ir::ValueId id) const;
  // Gives the values that a packed step reads the sizes of the run, and returns them as they were.
  std::vector<std::pair<ir::ValueId, Tensor>> pack(const fuse::Step& step);
  // The reverse, after the step; what it has written gets the sizes of its memory.
  void unpack(const fuse::Step& step, std::vector<std::pair<ir::ValueId, Tensor>> before);
  CallRun* call_of(size_t step) const;

  std::shared_ptr<const CompiledProgram> program_;
  const ir::Graph& graph_;
  const std::vector<std::unique_ptr<cpu::Kernel>>& kernels_;  // by step
  ThreadPool& pool_;
  const bool tune_;
  std::vector<std::unique_ptr<CallRun>> calls_;  // by step; null for most, empty if there is none
  std::vector<Tensor> values_, targets_;
  std::shared_ptr<const GrowingProgram> growing_;  // null in a run of fixed sizes
  std::vector<int64_t> symbols_;
  std::map<size_t, std::vector<int64_t>> passed_sizes_;  // by step
  std::vector<bool> is_output_;
  std::vector<bool> leaves_;          // by step: the run's caller gets memory that it writes
  std::vector<int64_t> fixed_bytes_;  // of the outputs, by step; -1: they depend on a run
  const SizeChecks all_checks_;
  SizeChecks checks_;  // of this run
  MemoryMeter meter_;
  // Of values that end with the run, and of those that its caller gets and may hold.
  const std::shared_ptr<MemoryPool> memory_ =
      std::make_shared<MemoryPool>(MemoryPool::Layout::Slab);
  const std::shared_ptr<MemoryPool> outputs_ = std::make_shared<MemoryPool>();
  bool has_run_ = false, packs_ = false;  // the step that runs is packed
  int64_t memory_limit_ = 0, peak_ = 0;
};

}  // namespace redfuser::runtime
