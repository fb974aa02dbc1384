// Models whose structure a run decides, and their values node by node.
#pragma once

#include "onnx/import/import.h"
#include "passes/node_evaluator.h"
#include "redfuser/redfuser.h"

namespace redfuser::testing {

// Of a model's text.
inline constexpr const char* kHead = "<ir_version: 10, opset_import: [\"\" : 21]> g ";

// first, first + 0.5, ...
inline Tensor ramp(Dims dims, float first) {
  Tensor tensor(DType::Float32, std::move(dims));
  for (int64_t i = 0; i < tensor.size(); ++i) {
    tensor.as<float>()[i] = first + 0.5f * static_cast<float>(i);
  }
  return tensor;
}

inline NamedTensors evaluated(const Model& model, const NamedTensors& inputs) {
  ThreadPool pool(1);
  passes::NodeEvaluator evaluator(pool);
  return onnx::evaluate_model(*model.handle(), inputs, [&](ir::Graph& graph, ir::NodeId node) {
    evaluator.evaluate(graph, node);
  });
}

}  // namespace redfuser::testing
