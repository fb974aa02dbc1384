#include "codegen/core/step_builder.h"

#include "base/error.h"

namespace redfuser::codegen {

DType StepBuilder::dtype_of(int64_t value) const {
  if (value >= kScratchValues)
    return scratch_dtypes.at(static_cast<size_t>(value - kScratchValues));
  return graph.values.at(static_cast<size_t>(value)).dtype;
}

int64_t StepBuilder::add_scratch(DType dtype, ir::Expr elements) {
  scratch_dtypes.push_back(dtype);
  ir::Expr bytes = pool().mul(elements, pool().integer(static_cast<int64_t>(size_of(dtype))));
  result.scratch.push_back({bytes});
  return kScratchValues + static_cast<int64_t>(scratch_dtypes.size()) - 1;
}

BufferRef StepBuilder::buffer(int64_t value) const {
  BufferRef ref;
  if (value >= kScratchValues) {
    ref.scratch = static_cast<int>(value - kScratchValues);
  } else {
    ref.value = static_cast<ir::ValueId>(value);
  }
  return ref;
}

void StepBuilder::fail(const std::string& message) const {
  const ir::Node& node = graph.nodes.at(static_cast<size_t>(step.nodes.back()));
  user_error("[{}] node \"{}\": {}", node.op, node.name, message);
}

void StepBuilder::fail_without_kernel() const {
  std::string text = "no kernel computes it";
  for (const auto* left_out : {&result.left_out.families, &result.left_out.offers}) {
    for (const auto& [name, error] : *left_out) text += fmt::format("; {} fails: {}", name, error);
  }
  fail(text);
}

StepBuilder StepBuilder::trial() const {
  StepBuilder other(graph, step, target);
  other.sizes = sizes;
  other.result.left_out = result.left_out;
  return other;
}

}  // namespace redfuser::codegen
