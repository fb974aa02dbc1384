// Runs a model node by node, for structures that depend on run-time values.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "onnx/import/model_walk.h"

namespace redfuser::onnx {

// Inputs are constants, and every node is computed when it is added, so that later nodes know all
// values. Values of an iteration are dropped after it to limit memory.
class Interpreter final : public ModelWalk {
 public:
  // Computes the last node of a graph, whose inputs are constants, and makes its outputs constants.
  using Evaluate = std::function<void(ir::Graph&, ir::NodeId)>;
  // The parameters before `evaluate` are ModelWalk's.
  Interpreter(std::shared_ptr<const ::onnx::ModelProto> model, const std::string& path,
              std::shared_ptr<const NamedTensors> weights, Evaluate evaluate)
      : ModelWalk(std::move(model), path, std::move(weights)), evaluate_(std::move(evaluate)) {}

  // Returns the outputs in order; `inputs` are of main_inputs. Throws UserError for an invalid
  // model or inputs that an operator refuses.
  std::vector<Tensor> run(std::span<const Tensor> inputs);
  // The outputs of a subgraph alone; `inputs` are of its formals, then of its captured values.
  std::vector<Tensor> run(const Subgraph& body, std::span<const Tensor> inputs);

 private:
  void give_input(const std::string& name, const Tensor& tensor, Scope& scope);
  std::vector<Tensor> outputs() const;
  void renew_pool();

  void count_step() override;
  void node_added(ir::NodeId node) override;
  int64_t max_iterations() const override { return INT64_MAX; }
  ir::ValueId renamed(ir::ValueId value, const std::string& name, const Origin& origin) override;
  std::string name_for(const std::string& wanted) override { return wanted; }
  void iteration_done(Mark& mark, std::vector<ir::ValueId>& parts,
                      std::vector<ir::ValueId>& states) override;
  bool makes_calls() const override { return false; }

  const Evaluate evaluate_;
  int64_t steps_ = 0;  // since the last node
};

}  // namespace redfuser::onnx
