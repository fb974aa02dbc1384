#include "onnx/proto/constants.h"

#include <utility>

#include "ops/tensor_element.h"

namespace redfuser::onnx {

ir::ValueId add_constant(ir::Graph& graph, const std::string& name, Tensor tensor) {
  const ir::ValueId id = graph.add_value(name, tensor.dtype());
  ir::Value& value = graph.values[static_cast<size_t>(id)];
  for (const int64_t dim : tensor.dims()) value.shape.push_back(graph.pool->integer(dim));
  const bool numbers = size_of(tensor.dtype()) != 0 && tensor.dtype() != DType::String;
  if (numbers &&
      (tensor.size() == 1 || (!is_float(tensor.dtype()) && tensor.size() <= ir::kMaxElements))) {
    value.elements = ops::tensor_elements(*graph.pool, tensor);
    value.has_elements = true;
  }
  value.constant = std::move(tensor);
  return id;
}

}  // namespace redfuser::onnx
