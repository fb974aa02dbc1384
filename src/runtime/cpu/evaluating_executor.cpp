#include "runtime/cpu/evaluating_executor.h"

#include <cstring>
#include <set>

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
    std::set<const void*> given;
    for (const auto& [name, tensor] : inputs) note(tensor, given);
    for (auto& [name, tensor] : outputs) tensor = detached(tensor, given);
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

  static bool is_list(const Tensor& tensor) {
    return tensor.dtype() == DType::Sequence || tensor.dtype() == DType::Optional;
  }

  static void note(const Tensor& tensor, std::set<const void*>& given) {
    if (!is_list(tensor)) {
      given.insert(tensor.data());
      return;
    }
    for (const Tensor& element : tensor.elements()) note(element, given);
  }

  // The caller may reuse an input's memory once run has returned.
  static Tensor detached(const Tensor& tensor, const std::set<const void*>& given) {
    if (is_list(tensor)) {
      std::vector<Tensor> elements = tensor.elements();
      for (Tensor& element : elements) element = detached(element, given);
      if (tensor.dtype() == DType::Sequence) return Tensor::sequence(std::move(elements));
      return Tensor::optional(elements.empty() ? Tensor() : elements[0]);
    }
    if (!given.count(tensor.data())) return tensor;
    Tensor copy(tensor.dtype(), tensor.dims());
    if (tensor.bytes() > 0) std::memcpy(copy.mutable_data(), tensor.data(), tensor.bytes());
    return copy;
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
