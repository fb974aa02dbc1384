#include "cpu/steps/step_form.h"

#include "cpu/steps/step_kernel.h"

namespace redfuser::cpu {

int64_t bytes_of(std::span<const InnerValue> values) {
  int64_t bytes = 0;
  for (const InnerValue& value : values) {
    if (value.source != ir::kAbsent) continue;
    bytes += element_count(value.dims) * static_cast<int64_t>(size_of(value.dtype));
  }
  return bytes;
}

namespace {

// Null for a value of the graph.
const InnerValue* inner_of(const StepForm& form, ir::ValueId value) {
  const auto index = static_cast<size_t>(value), first = form.graph.values.size();
  return index < first ? nullptr : &form.inner[index - first];
}

}  // namespace

Dims memory_of(const StepForm& form, ir::ValueId value) {
  if (const InnerValue* inner = inner_of(form, value)) return inner->dims;
  return form.growing != nullptr ? form.growing->memory_of(form.graph, value)
                                 : dims_of(form.graph, value, form.symbols);
}

DType dtype_of(const StepForm& form, ir::ValueId value) {
  if (const InnerValue* inner = inner_of(form, value)) return inner->dtype;
  return form.graph.values[static_cast<size_t>(value)].dtype;
}

std::vector<int64_t> row_tiles(int64_t rows, int64_t most) {
  std::vector<int64_t> tiles;
  for (int64_t tile = 1;; tile *= 2) {
    const int64_t equal = ceil_div(rows, ceil_div(rows, std::min(tile, rows)));
    if (tiles.empty() || tiles.back() != equal) tiles.push_back(equal);
    if (2 * tile > most || tile >= rows) return tiles;
  }
}

}  // namespace redfuser::cpu
