// A model as a graph.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "onnx/import/import.h"
#include "onnx/import/model_walk.h"

namespace redfuser::onnx {

class Importer final : public ModelWalk {
 public:
  // The parameters are ModelWalk's.
  Importer(std::shared_ptr<const ::onnx::ModelProto> model, const std::string& path,
           std::shared_ptr<const NamedTensors> weights)
      : ModelWalk(std::move(model), path, std::move(weights)) {}

  // Symbolic dimensions of inputs become symbols. Throws UserError for an invalid model,
  // NeedsValues for a valid one that needs the Interpreter.
  ir::Graph run();
  // The same for inputs of these types and sizes, in the order of main_inputs.
  ir::Graph run(std::span<const BodyInput> inputs);
  // The same for a subgraph alone; `inputs` are of its formals, then of its captured values.
  ir::Graph run(const Subgraph& body, std::span<const BodyInput> inputs);
  // By node of the main graph, the reason why it cannot be imported; empty where it can. The values
  // of a node that cannot have the types that the file declares.
  std::vector<std::string> refusals();
  // The calls of the graph that run() has returned, by number.
  std::vector<std::shared_ptr<const ControlCall>> take_calls() { return std::move(calls_); }

 private:
  void reserve_names();
  // Adds a free input of the main graph.
  using AddInput = std::function<ir::ValueId(const ::onnx::ValueInfoProto&)>;
  ir::Graph run_main(const AddInput& add);
  ir::ValueId add_declared_input(const ::onnx::ValueInfoProto& input);
  ir::ValueId add_body_input(const std::string& name, const BodyInput& input);
  // Checks the file's value_info of intermediate values.
  void check_values(const Scope& scope) const;

  void count_step() override;
  void node_added(ir::NodeId) override {}
  int64_t max_iterations() const override { return kMaxUnrolled; }
  ir::ValueId renamed(ir::ValueId value, const std::string& name, const Origin& origin) override;
  std::string name_for(const std::string& wanted) override;
  void iteration_done(Mark&, std::vector<ir::ValueId>&, std::vector<ir::ValueId>&) override {}
  bool makes_calls() const override { return true; }

  std::unordered_set<std::string> names_;
  std::unordered_map<std::string, int> copies_;  // by name: copies made so far
  int64_t steps_ = 0;                            // nodes visited, expansions included
};

}  // namespace redfuser::onnx
