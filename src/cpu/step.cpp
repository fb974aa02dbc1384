#include "cpu/step.h"

#include "ir/evaluate.h"

namespace redfuser::cpu {

Dims dims_of(const ir::Graph& graph, ir::ValueId value, std::span<const int64_t> symbols) {
  Dims dims;
  for (ir::Expr size : graph.values[static_cast<size_t>(value)].shape) {
    dims.push_back(evaluate_size(size, symbols));
  }
  return dims;
}

}  // namespace redfuser::cpu
