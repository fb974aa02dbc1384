// Outputs of a block's rows, or their partial states if the keys are in several segments.
#include <fmt/format.h>

#include "codegen/attention/large_head/text.h"
#include "codegen/attention/mma/split_kv_merge.h"

namespace redfuser::codegen {

void LargeHeadText::finish_rows() {
  join_lanes();
  std::vector<size_t> own;
  for (size_t k = 0; k < rows_.accumulators.size(); ++k) {
    if (!is_value(k) && masked_.per_lane[k]) own.push_back(k);
  }
  const bool alone = wide_.scorers == 1;
  alone ? share_accumulators() : exchange(own, "a");
  if (wide_.cluster > 1) {
    // The state replaces the tiles, so all reads of tiles must be done.
    if (own.empty() && !alone) emitter_.line("ptx_named_sync(kWideReduced, kWideThreads);");
    return finish_cluster();
  }
  if (segments_.count->is_constant(1)) return write_rows();
  emitter_.open();
  store_states();
  const std::string states = emitter_.close();
  emitter_.open();
  write_rows();
  const std::string outputs = emitter_.close();
  emitter_.line(fmt::format("if (segments > 1) {{\n{}}} else {{\n{}}}", states, outputs));
}

std::string LargeHeadText::head_stores() const {
  std::string scalars;
  size_t place = 0;
  for (size_t k = 0; k < rows_.accumulators.size(); ++k, ++place) {
    if (!is_value(k)) scalars += fmt::format("state[{}] = a{}[h];\n", place, k);
  }
  for (size_t r = 0; r < rows_.references.size(); ++r, ++place) {
    scalars += fmt::format("state[{}] = r{}[h];\n", place, r);
  }
  return scalars + fmt::format("state[{}] = __int_as_float(static_cast<int>(folded));\n", place);
}

void LargeHeadText::store_states() {
  const int head = state_head(form_), block = state_block(form_, 1), columns = block - head;
  const bool whole = columns % (2 * columns_ * wide_.cluster) == 0;
  const std::string last =
      whole ? std::string() : fmt::format("if ({}n * 8 >= {}) break;\n", first_column_, columns);
  emitter_.line(fmt::format(
      "float* const tile_states = reinterpret_cast<float*>({0}) + ((other * row_tiles + row_tile) "
      "* {1} * segments + segment) * {2};\n"
      "#pragma unroll\nfor (int h = 0; h < 2; ++h) {{\n"
      "if (own_row + h * 8 >= {3}) break;\n"
      "float* const state = tile_states + static_cast<long long>(tile_row + h * 8) * segments * "
      "{2};\n"
      "if (group == 1 && pair == 0) {{\n{4}}}\n"
      "float* const values = state + {5} + group_column + pair;\n"
      "#pragma unroll\nfor (int n = 0; n < {6}; ++n) {{\n{7}float2 both;\nboth.x = o[n][h * 2];\n"
      "both.y = o[n][h * 2 + 1];\n*reinterpret_cast<float2*>(values + n * 8) = both;\n}}\n}}",
      kernel_.buffer(segments_.states, true), LargeHeadLayout::kRows, block, row_count_,
      head_stores(), head, columns_ / 8, last));
}

}  // namespace redfuser::codegen
