// Runs the imported graph by src/reference, without passes or plan. Every node's floats are rounded
// to their types, which models that round to integers rely on.
#include "runtime/cpu/reference_executor.h"

#include <map>

#include "base/error.h"
#include "onnx/import/import.h"
#include "ops/infer.h"
#include "ops/op_def.h"
#include "redfuser/memory_limit.h"
#include "reference/execute/evaluation.h"
#include "reference/expressions/lanes.h"
#include "runtime/cpu/cpu_executor.h"
#include "runtime/program/bind_inputs.h"
#include "runtime/program/sizes/size_checks.h"

namespace redfuser::runtime {
namespace {

// Evaluates the last node of a model without a plan.
void evaluate_newest(ir::Graph& graph, ir::NodeId id) {
  const ir::Node& node = graph.nodes[static_cast<size_t>(id)];
  std::vector<Tensor> inputs;
  for (const ir::ValueId input : node.inputs) {
    inputs.push_back(input == ir::kAbsent
                         ? Tensor()
                         : reference::widened(graph.values[static_cast<size_t>(input)].constant));
  }
  const std::vector<Tensor> outputs = reference::evaluate_node(graph, id, std::move(inputs));
  for (size_t k = 0; k < outputs.size(); ++k) {
    const ir::ValueId output = graph.nodes[static_cast<size_t>(id)].outputs[k];
    if (output == ir::kAbsent) continue;
    const DType dtype = graph.values[static_cast<size_t>(output)].dtype;
    ops::set_constant(graph, output, reference::rounded(outputs[k], dtype));
  }
}

class ReferenceExecutor : public Executor {
 public:
  ReferenceExecutor(std::shared_ptr<const CompiledProgram> program, const SessionOptions& options)
      : program_(std::move(program)),
        graph_(program_->model->graph),
        memory_limit_(cpu_memory_limit(options)) {
    device = "reference";
  }

  NamedTensors run(const NamedTensors& inputs) override {
    kept.clear();
    if (progress) progress(0, 1);
    const MemoryLimit limit(memory_limit_);
    NamedTensors outputs;
    if (program_->model->run_time_structure().empty()) {
      check(inputs);
      outputs = evaluated(inputs);
    } else {
      outputs = evaluate_model(*program_->model, inputs, evaluate_newest);
    }
    // Integers are not rounded, and may be those of an input or constant.
    for (auto& [name, output] : outputs) output = copied(output);
    peak = limit.peak_bytes();
    if (progress) progress(1, 1);
    return outputs;
  }

 private:
  void check(const NamedTensors& inputs) const {
    std::vector<Tensor> values(program_->graph().values.size());
    std::vector<int64_t> symbols;
    bind_inputs(*program_, inputs, values, symbols);
    SizeChecks(program_->graph()).run(symbols);
  }

  // The outputs, and the values that are kept.
  NamedTensors evaluated(const NamedTensors& inputs) {
    std::vector<ir::ValueId> wanted = graph_.outputs;
    if (keeps_any()) {
      for (const ir::Node& node : graph_.nodes) {
        for (const ir::ValueId id : node.outputs) {
          if (id != ir::kAbsent && keeps(name_of_value(id))) wanted.push_back(id);
        }
      }
    }
    const reference::Evaluation evaluation(graph_, reference::Rounding::EveryNode);
    const std::vector<Tensor> values =
        evaluation.evaluate(wanted, [&](ir::ValueId id) -> const Tensor* {
          const auto input = inputs.find(name_of_value(id));
          const bool is_input = graph_.values[static_cast<size_t>(id)].producer < 0;
          return is_input && input != inputs.end() ? &input->second : nullptr;
        });
    NamedTensors outputs;
    for (size_t i = 0; i < wanted.size(); ++i) {
      const Tensor tensor =
          reference::rounded(values[i], graph_.values[static_cast<size_t>(wanted[i])].dtype);
      (i < graph_.outputs.size() ? outputs : kept)[name_of_value(wanted[i])] = tensor;
    }
    return outputs;
  }

  const std::string& name_of_value(ir::ValueId id) const {
    return graph_.values[static_cast<size_t>(id)].name;
  }

  std::shared_ptr<const CompiledProgram> program_;
  const ir::Graph& graph_;
  int64_t memory_limit_;
};

}  // namespace

std::unique_ptr<Executor> make_reference_executor(std::shared_ptr<const CompiledProgram> program,
                                                  const SessionOptions& options) {
  return std::make_unique<ReferenceExecutor>(std::move(program), options);
}

}  // namespace redfuser::runtime
