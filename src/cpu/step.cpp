#include "cpu/step.h"

#include "ir/evaluate.h"

namespace redfuser::cpu {

Dims dims_of(const ir::Graph& graph, ir::ValueId value, std::span<const int64_t> symbols) {
  const std::vector<ir::Expr>& shape = graph.values[static_cast<size_t>(value)].shape;
  Dims dims;
  dims.reserve(shape.size());
  for (ir::Expr size : shape) {
    dims.push_back(size->is_constant() ? size->integer : evaluate_size(size, symbols));
  }
  return dims;
}

Tensor& place(RunContext& context, ir::ValueId value, Dims dims) {
  const auto index = static_cast<size_t>(value);
  if (index >= context.values.size()) return context.value(value);
  Tensor& tensor = context.values[index];
  if (!context.targets.empty() && context.targets[index].defined() &&
      context.targets[index].size() == element_count(dims)) {
    return tensor = context.targets[index].reshaped(std::move(dims));
  }
  return tensor = Tensor(context.graph.values[index].dtype, std::move(dims));
}

}  // namespace redfuser::cpu
