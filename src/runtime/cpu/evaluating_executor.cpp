#include "runtime/cpu/evaluating_executor.h"

#include "base/error.h"
#include "onnx/import/import.h"
#include "passes/node_evaluator.h"
#include "redfuser/memory_limit.h"
#include "runtime/cpu/cpu_executor.h"

namespace redfuser::runtime {
namespace {

class EvaluatingExecutor : public Executor {
 public:
  EvaluatingExecutor(std::shared_ptr<const CompiledProgram> program, const SessionOptions& options)
      : program_(std::move(program)),
        evaluator_(options.threads),
        memory_limit_(cpu_memory_limit(options)) {}

  NamedTensors run(const NamedTensors& inputs) override {
    times.clear();
    kept.clear();
    for (const auto& [name, tensor] : inputs) check_name(name);
    const MemoryLimit limit(memory_limit_);
    int done = 0;
    NamedTensors outputs =
        evaluate_model(*program_->model, inputs, [&](ir::Graph& graph, ir::NodeId node) {
          // The number of nodes is not known before they run.
          if (progress) progress(done, done + 1);
          ++done;
          evaluator_.evaluate(graph, node);
        });
    // The caller may reuse an input's memory, and write to outputs, once run has returned; an
    // output may also be a constant of the model.
    for (auto& [name, tensor] : outputs) tensor = copied(tensor);
    peak = limit.peak_bytes();
    return outputs;
  }

 private:
  void check_name(const std::string& name) const {
    for (const ValueInfo& info : program_->model->inputs) {
      if (info.name == name) return;
    }
    user_error("the model has no input \"{}\"", name);
  }

  std::shared_ptr<const CompiledProgram> program_;
  passes::NodeEvaluator evaluator_;
  int64_t memory_limit_;
};

}  // namespace

std::unique_ptr<Executor> make_evaluating_executor(std::shared_ptr<const CompiledProgram> program,
                                                   const SessionOptions& options) {
  return std::make_unique<EvaluatingExecutor>(std::move(program), options);
}

}  // namespace redfuser::runtime
