// A set of claimed nodes, compiled, as ONNX Runtime runs it.
#pragma once

#include <string>
#include <vector>

#include "ep/api.h"
#include "ep/session_pool.h"

namespace redfuser::ep {

// Runs on the tensors of ONNX Runtime where they are, from any number of threads at once. Values
// are found by name: ONNX Runtime's order of a node's inputs and outputs is not the model's.
class CompiledNode final : public OrtNodeComputeInfo {
 public:
  // `inputs` and `outputs` are the names of the node's, in its order. The model's inputs are among
  // them.
  CompiledNode(const Api& api, const Model& model, Program program, const SessionOptions& options,
               std::vector<std::string> inputs, std::vector<std::string> outputs);

 private:
  void run(OrtKernelContext& context);
  NamedTensors inputs_of(const OrtKernelContext& context) const;
  // The tensor of the node's output, which ONNX Runtime allocates or has from its caller.
  Tensor output(OrtKernelContext& context, size_t index, const Dims& dims) const;
  void run_in_place(Session& session, const NamedTensors& inputs, const NamedDims& dims,
                    OrtKernelContext& context) const;
  void run_and_copy(Session& session, const NamedTensors& inputs, OrtKernelContext& context) const;

  const Api api_;
  const std::vector<std::string> inputs_, outputs_;
  std::vector<size_t> used_;  // inputs that are the model's
  SessionPool sessions_;
};

}  // namespace redfuser::ep
