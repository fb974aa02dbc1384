// Control flow in a run: the bodies of an If, Loop or Scan as programs of their own.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "passes/node_evaluator.h"
#include "runtime/cpu/growing_body.h"
#include "runtime/cpu/plan_run.h"

namespace redfuser::runtime {

// One graph of BodyPrograms in the runs of one session: its programs in use, with their values.
class BodyRun {
 public:
  BodyRun(const BodyPrograms& programs, ThreadPool& pool, bool tune)
      : programs_(programs), pool_(pool), tune_(tune), evaluator_(pool) {}

  // The outputs of the graph for `inputs`, one for each of its inputs, constants included. Sizes
  // without a plan are evaluated node by node.
  std::vector<Tensor> run(std::span<const Tensor* const> inputs, int64_t memory_limit,
                          StepObserver* observer);

  // Before the runs of the caller's next run.
  void restart();
  // The programs in use, and the plans of theirs that were made for sizes that grow.
  int64_t programs() const { return static_cast<int64_t>(loaded_.size()); }
  int64_t growing_plans() const;
  // True if the last run had nothing to compute.
  bool is_idle() const { return idle_; }
  // Since the last reset: the time of each step, all runs added up, and the largest number of
  // bytes.
  void reset();
  void collect(std::vector<KernelTime>& times) const;
  int64_t peak() const { return peak_; }
  // The steps of the programs that have run, as kernels of one step.
  void collect(std::vector<StepKernel>& steps) const;

 private:
  struct Loaded {
    std::shared_ptr<const BodyProgram> body;
    std::unique_ptr<PlanRun> plan;         // null: evaluated node by node
    std::unique_ptr<GrowingBody> growing;  // null where no size is open
    std::vector<KernelTime> times;         // by step, with those inside of it
  };
  // Null where no program is kept for the inputs.
  Loaded* loaded_for(std::span<const Tensor* const> inputs, bool exact);
  std::vector<Tensor> planned(Loaded& loaded, std::span<const Tensor* const> inputs,
                              int64_t memory_limit, StepObserver* observer);
  std::vector<Tensor> evaluated(std::span<const Tensor* const> inputs, StepObserver* observer);

  const BodyPrograms& programs_;
  ThreadPool& pool_;
  bool tune_;
  std::vector<Loaded> loaded_;  // exact ones first
  passes::NodeEvaluator evaluator_;
  std::vector<const Tensor*> given_;  // of the current run: inputs that are no constants
  bool idle_ = false;
  int64_t peak_ = 0;
};

// What computes a step whose work is in these graphs.
StepFacts facts_of(std::span<const BodyRun> bodies);

// One step that stands for a call.
class CallRun {
 public:
  CallRun(const CompiledProgram& program, size_t step,
          const std::vector<std::shared_ptr<const BodyPrograms>>& bodies, ThreadPool& pool,
          bool tune);

  // Computes the step's outputs and binds their sizes. Throws NeedsValues for outputs of other
  // types than the graph around expects.
  void run(cpu::RunContext& context, int64_t memory_limit, StepObserver* observer);
  // Before the caller's next run, in which it may run several times.
  void restart();
  // Of the last run.
  std::vector<KernelTime> times() const;
  int64_t peak() const;
  StepFacts facts() const { return facts_of(bodies_); }

 private:
  std::vector<Tensor> run_body(size_t body, const cpu::RunContext& context,
                               std::span<const Tensor> formals);
  std::vector<Tensor> run_if(const cpu::RunContext& context);
  std::vector<Tensor> run_loop(const cpu::RunContext& context);
  std::vector<Tensor> run_scan(const cpu::RunContext& context);
  // The element of a condition or a count.
  int64_t decided(const Tensor& tensor, const std::string& name, const char* what) const;
  int64_t decided(const cpu::RunContext& context, size_t input, const char* what) const;
  void set_outputs(cpu::RunContext& context, std::vector<Tensor> results) const;

  const onnx::ControlCall& call_;
  const ir::Node& node_;
  const std::string path_;
  std::vector<BodyRun> bodies_;
  int64_t memory_limit_ = 0;
  StepObserver* observer_ = nullptr;   // of the current run; may be null
  std::vector<const Tensor*> inputs_;  // of the body that runs
};

}  // namespace redfuser::runtime
