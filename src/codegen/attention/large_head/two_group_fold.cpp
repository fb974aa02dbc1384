// Folds a tile of scores into the state of the rows. Both warpgroups keep the whole state; each
// reduces over half of the keys.
#include <fmt/format.h>

#include "codegen/attention/large_head/text.h"
#include "codegen/text/loop.h"
#include "codegen/text/operation_text.h"

namespace redfuser::codegen {

std::string LargeHeadText::fold_wide_tile() {
  const bool even = rows_.length()->is_constant() && rows_.length()->integer % wide_.keys == 0;
  if (even && by_tile_.full->is_constant(1)) {
    return fmt::format("{{\n{}}}", fold_scores(whole_, false));
  }
  const std::string masked = fold_scores(masked_, !even);
  emitter_.open();
  emitter_.bind(ranges_.key.first, "tile_first");
  emitter_.bind(ranges_.key.last, fmt::format("(tile_first + {})", wide_.keys - 1));
  if (!ranges_.rows.empty()) {
    emitter_.bind(ranges_.rows[0].first, "group_row");
    emitter_.bind(ranges_.rows[0].last, "last_group_row");
  }
  const std::string full = emitter_.emit(by_tile_.full);
  // Decided for the whole tile, so both warpgroups execute the same barriers.
  const std::string inside =
      even ? std::string("true") : fmt::format("tile_valid == {}", wide_.keys);
  const std::string test = emitter_.close() + "whole = " + all_of({inside, full});
  return fmt::format("bool whole;\n{{\n{};\n}}\nif (whole) {{\n{}}} else {{\n{}}}", test,
                     fold_scores(whole_, false), masked);
}

void LargeHeadText::fold_phase(const ScoreSpec& score, size_t phase, bool tail) {
  if (wide_.scorers == 1) return HopperText::fold_phase(score, phase, tail);
  const Phase& range = score.phases[phase];
  std::vector<size_t> reduced, shared;
  std::string declarations;
  for (size_t k = range.begin; k < range.end; ++k) {
    if (is_value(k)) continue;
    reduced.push_back(k);
    if (!score.per_lane[k]) shared.push_back(k);
    declarations += fmt::format("float rows{}[2];\n", k);
  }
  emitter_.line(declarations);
  open_row();
  bind_references();
  for (const size_t k : reduced) {
    const cascade::Accumulator& a = rows_.accumulators[k];
    const std::string identity = identity_of(a.reduction, a.dtype);
    emitter_.line(fmt::format("float tile{0}[2] = {{{1}, {1}}};", k, identity));
  }
  fold_element(score, phase, tail);
  for (const size_t k : reduced) {
    emitter_.line(fmt::format("rows{}[h] = {};", k, tile_reduction(score, k)));
  }
  emitter_.line(close_row());
  exchange(shared, "rows");
  open_row();
  bind_references();
  for (const size_t k : reduced) update_state(score, k, fmt::format("rows{}[h]", k));
  emitter_.line(close_row());
  make_references(range.end);
}

bool LargeHeadText::exchanges() const {
  for (size_t k = 0; k < rows_.accumulators.size(); ++k) {
    if (!is_value(k) && !masked_.per_lane[k]) return true;
  }
  return false;
}

void LargeHeadText::exchange(const std::vector<size_t>& accumulators, const std::string& name) {
  if (accumulators.empty()) return;
  std::string store, join;
  for (const size_t k : accumulators) {
    const size_t part = k * 2 * LargeHeadLayout::kRows;
    store += fmt::format("reduced[{} + (group - 1) * {} + tile_row + h * 8] = {}{}[h];\n", part,
                         LargeHeadLayout::kRows, name, k);
    join += fmt::format("join_groups<{}>({}{}, reduced + {}, tile_row);\n",
                        combiner_of(rows_.accumulators[k].reduction), name, k, part);
  }
  emitter_.line(
      fmt::format("if (pair == 0) {{\n{}}}\nptx_named_sync(kWideReduced, "
                  "kWideThreads);\n{}",
                  unrolled("h", 2, store), join));
}

}  // namespace redfuser::codegen
