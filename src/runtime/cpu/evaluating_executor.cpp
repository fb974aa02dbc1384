#include "runtime/cpu/evaluating_executor.h"

#include "base/error.h"
#include "onnx/import/import.h"
#include "redfuser/memory_limit.h"
#include "runtime/cpu/call_run.h"
#include "runtime/cpu/cpu_executor.h"

namespace redfuser::runtime {
namespace {

double microseconds(StepObserver::Clock::duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

class EvaluatingExecutor : public Executor, private StepObserver {
 public:
  EvaluatingExecutor(std::shared_ptr<const CompiledProgram> program, const SessionOptions& options)
      : program_(std::move(program)),
        pool_(options.threads),
        graph_(*program_->by_sizes, pool_, options.tune),
        memory_limit_(cpu_memory_limit(options)) {}

  NamedTensors run(const NamedTensors& inputs) override {
    times.clear();
    kept.clear();
    done_ = 0;
    graph_.reset();
    graph_.restart();
    const std::vector<Tensor> given = onnx::ordered_inputs(*program_->model, inputs);
    std::vector<const Tensor*> refs;
    for (const Tensor& tensor : given) refs.push_back(&tensor);
    const MemoryLimit limit(memory_limit_);
    const auto start = Clock::now();
    const std::vector<Tensor> results = graph_.run(refs, memory_limit_, this);
    if (profiling) note_time(start);
    // The caller may reuse an input's memory, and write to outputs, once run has returned; an
    // output may also be a constant of the model, or show a part of another one.
    NamedTensors outputs;
    for (size_t i = 0; i < results.size(); ++i) {
      outputs[program_->model->outputs[i].name] = copied(results[i]);
    }
    peak = limit.peak_bytes();
    return outputs;
  }

  std::vector<StepFacts> step_facts() const override {
    if (program_->model->needs_values.empty()) return {};
    return {facts_of(std::span(&graph_, 1))};
  }

 private:
  // The number of steps or nodes is not known before they run.
  void working() override {
    if (progress) progress(done_, done_ + 1);
    ++done_;
  }
  void starting(size_t) override {}
  void computed(const fuse::Step&, std::span<Tensor>) override {}
  bool times_steps() const override { return profiling; }
  void ended(size_t, Clock::time_point, std::vector<KernelTime>) override {}

  void note_time(Clock::time_point start) {
    times.push_back({kWholeGraph, "opaque", 0, microseconds(Clock::now() - start)});
    graph_.collect(times.back().kernels);
    for (KernelTime& time : times.back().kernels) {
      time.start_us -= microseconds(start.time_since_epoch());
    }
  }

  std::shared_ptr<const CompiledProgram> program_;
  ThreadPool pool_;
  BodyRun graph_;
  int64_t memory_limit_;
  int done_ = 0;
};

}  // namespace

std::unique_ptr<Executor> make_evaluating_executor(std::shared_ptr<const CompiledProgram> program,
                                                   const SessionOptions& options) {
  return std::make_unique<EvaluatingExecutor>(std::move(program), options);
}

}  // namespace redfuser::runtime
