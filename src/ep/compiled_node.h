// A set of claimed nodes, compiled, as ONNX Runtime runs it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ep/api.h"
#include "ep/session_pool.h"

namespace redfuser::ep {

// Of a compiled node. `inputs` and `outputs` are the names of the node's, in its order; the model's
// inputs are among them.
struct NodeParts {
  Api api;
  Model model;
  Program program;
  SessionOptions options;
  std::vector<std::string> inputs, outputs;
};

// Runs on the tensors of ONNX Runtime where they are, from any number of threads at once. Values
// are found by name: ONNX Runtime's order of a node's inputs and outputs is not the model's.
class CompiledNode : public OrtNodeComputeInfo {
 public:
  virtual ~CompiledNode() = default;

 protected:
  explicit CompiledNode(NodeParts parts);

  // Input number `index` of the node.
  const OrtValue& input(const OrtKernelContext& context, size_t index) const;
  // The tensor of the node's output, which ONNX Runtime allocates or has from its caller; null
  // where nobody wants it.
  OrtValue* output(OrtKernelContext& context, size_t index, const Dims& dims) const;
  // The sizes of the outputs, where inputs alone decide them. A run reports faults of the inputs.
  static std::optional<NamedDims> known_dims(const Session& session, const NamedDims& inputs);

  const Api api_;
  const std::vector<std::string> inputs_, outputs_;
  std::vector<size_t> used_;  // inputs that are the model's
  SessionPool sessions_;

 private:
  virtual void run(OrtKernelContext& context) = 0;
};

}  // namespace redfuser::ep
