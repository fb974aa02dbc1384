#include "codegen/attention/element_work.h"

#include <algorithm>
#include <set>

#include "codegen/attention/visited_tiles.h"
#include "codegen/elementwise/aligned_accesses.h"
#include "ir/scalars/operations.h"

namespace redfuser::codegen {
namespace {

class Counter {
 public:
  explicit Counter(const AttentionSpec& form) : form_(form), seen_{form.contraction, form.value} {}

  ElementWork run() {
    for (const cascade::Accumulator& a : form_.rows.accumulators) go(a.lift);
    return work_;
  }

 private:
  void go(ir::Expr e) {
    if (!seen_.insert(e).second) return;
    if (e->op == ir::ExprOp::Read) {
      work_.reads += e->depends_on(form_.rows.cascade.stream) ? 1 : 0;
      return;
    }
    if (e->op == ir::ExprOp::Reduce || e->args.empty()) return;
    for (ir::Expr arg : e->args) go(arg);
    (ir::scalar_op(e->op).costly ? work_.specials : work_.scalars) += 1;
  }

  const AttentionSpec& form_;
  std::set<ir::Expr> seen_;
  ElementWork work_;
};

}  // namespace

ElementWork element_work(const AttentionSpec& form) { return Counter(form).run(); }

double scattered_columns(ir::ExprPool& pool, const AttentionSpec& form) {
  const auto columns = [&](ir::Expr read, ir::Expr axis) {
    const bool adjacent = adjacent_from(pool, read->args[0], axis) != nullptr;
    return adjacent ? 0.0 : static_cast<double>(axis->extent()->integer);
  };
  return columns(form.key, form.depth) + columns(form.value, form.column);
}

double mean_visits(ir::ExprPool& pool, const AttentionSpec& form, int tile_rows, int keys,
                   const KnownSizes& sizes) {
  constexpr int64_t kSamples = 16;
  const VisitedTiles visits(pool, form, mask_condition(pool, form), keys, sizes);
  const int64_t rows = form.row ? sizes.of(form.row->extent()) : 1;
  const int64_t tiles = (rows + tile_rows - 1) / tile_rows;
  const int64_t samples = std::min(tiles, kSamples);
  double sum = 0;
  for (int64_t i = 0; i < samples; ++i) {
    const int64_t first = (2 * i + 1) * tiles / (2 * samples) * tile_rows;
    sum += static_cast<double>(visits.of(first, std::min(first + tile_rows, rows) - 1));
  }
  return sum / static_cast<double>(std::max<int64_t>(samples, 1));
}

}  // namespace redfuser::codegen
