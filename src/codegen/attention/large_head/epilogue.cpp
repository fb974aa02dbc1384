// Outputs of a block's rows, or their partial states if the keys are in several segments.
#include <fmt/format.h>

#include "codegen/attention/large_head/text.h"
#include "codegen/text/loop.h"

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

// Declares `form`, and `own`, the states of the thread's rows.
void LargeHeadText::declare_functor() {
  functor_text_ = functor_.text();
  emitter_.line(fmt::format("const Form form = {};\nState own[2];\n{}", functor_.construction(),
                            unrolled("h", 2, functor_.from_registers("own[h]", "folded"))));
}

void LargeHeadText::store_states() {
  const std::string buffer = kernel_.buffer(segments_.states, true);
  declare_functor();
  emitter_.line(fmt::format(
      "float* const tile_states = reinterpret_cast<float*>({}) + ((other * row_tiles + row_tile) * "
      "{} * segments + segment) * StateBlock<1, Form>::kFloats;\n"
      "store_rows<Form>(tile_states, own, o, segments, tile_row, {} - first_row, group_column, "
      "group == 1);",
      buffer, LargeHeadLayout::kRows, row_count_));
}

}  // namespace redfuser::codegen
