#include "codegen/attention/visited_tiles.h"

#include <algorithm>

#include "ir/evaluate.h"

namespace redfuser::codegen {
namespace {

std::vector<ir::Expr> row_axes(const AttentionSpec& form) {
  if (!form.row) return {};
  return {form.row};
}

}  // namespace

VisitedTiles::VisitedTiles(ir::ExprPool& pool, const AttentionSpec& form, const MaskCondition& mask,
                           int keys, const KnownSizes& sizes)
    : sizes_(sizes),
      length_(sizes.of(form.rows.length())),
      ranges_(cascade::tile_ranges(pool, mask.visible, row_axes(form), form.rows.cascade.stream)),
      keys_(keys),
      skips_(mask.skips()) {
  for (const cascade::KeyRange& range : ranges_.visible) {
    for (ir::Expr e : {range.begin, range.end}) {
      visit(e, [&](ir::Expr x) {
        skips_ &= x->op != ir::ExprOp::Read && x->op != ir::ExprOp::Leaf;
        if (x->op == ir::ExprOp::Symbol) skips_ &= sizes.of(x) >= 0;
      });
    }
  }
}

int64_t VisitedTiles::of(int64_t first_row, int64_t last_row) const {
  if (!skips_) return (length_ + keys_ - 1) / keys_;
  const auto at = [&](ir::Expr axis) -> double {
    if (axis->op == ir::ExprOp::Symbol) return static_cast<double>(sizes_.of(axis));
    if (ranges_.rows.empty()) return 0;
    if (axis == ranges_.rows[0].first) return static_cast<double>(first_row);
    return axis == ranges_.rows[0].last ? static_cast<double>(last_row) : 0;
  };
  std::vector<std::pair<int64_t, int64_t>> tiles;
  for (const cascade::KeyRange& range : ranges_.visible) {
    const auto begin = static_cast<int64_t>(evaluate(range.begin, at));
    const auto end = static_cast<int64_t>(evaluate(range.end, at));
    tiles.emplace_back(begin / keys_, (end + keys_ - 1) / keys_);
  }
  std::sort(tiles.begin(), tiles.end());
  int64_t count = 0, reach = 0;
  for (const auto& [begin, end] : tiles) {
    const int64_t from = std::max(begin, reach);
    reach = std::max(end, from);
    count += reach - from;
  }
  return count;
}

}  // namespace redfuser::codegen
