// How many rows a tile has, by the time that the multiprocessors take for all of them: few tiles
// leave some of them without work, and a mask makes tiles unequal.
#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>

#include "codegen/attention_hopper.h"
#include "codegen/tile_ranges.h"

namespace redfuser {
namespace {

constexpr int kGroupRows = 64;
// Of a tile of keys for 1, 2 and 3 groups, and of a row tile besides. Only their ratios count; they
// are estimates from the throughput of two and three groups.
constexpr double kKeyTileTimes[] = {1.0, 1.5, 2.0}, kRowTileTime = 0.7;
constexpr double kGain = 0.9;  // what a smaller tile has to save

bool known(Expr size) { return size->is_constant() && size->integer > 0; }

// Tiles of keys that every row tile visits, as HopperText::place_work has them.
class Visits {
 public:
  Visits(ExprPool& pool, const AttentionForm& form, const HopperScores& scores, int keys)
      : form_(form),
        ranges_(tile_ranges(pool, scores.mask.visible, {form.row}, form.rows.stream)),
        keys_(keys),
        skips_(scores.mask.skips()) {
    for (Expr e : {ranges_.begin, ranges_.end}) {
      visit(e, [&](Expr x) {
        skips_ &= x->op != ExprOp::Symbol && x->op != ExprOp::Read && x->op != ExprOp::Leaf;
      });
    }
  }

  int64_t of(int64_t first_row, int64_t last_row) const {
    const int64_t length = form_.rows.length()->integer;
    if (!skips_) return (length + keys_ - 1) / keys_;
    // Other rows are taken to be alike.
    const auto at = [&](Expr axis) -> double {
      if (axis == ranges_.rows[0].first) return static_cast<double>(first_row);
      return axis == ranges_.rows[0].last ? static_cast<double>(last_row) : 0;
    };
    const auto begin = static_cast<int64_t>(evaluate(ranges_.begin, at));
    const auto end = static_cast<int64_t>(evaluate(ranges_.end, at));
    return std::max<int64_t>((end + keys_ - 1) / keys_ - begin / keys_, 0);
  }

 private:
  const AttentionForm& form_;
  const TileRanges ranges_;
  const int keys_;
  bool skips_;
};

// Until the last multiprocessor is done, when each takes the next row tile as it becomes free.
double time_of(const std::vector<double>& tiles, int64_t others, int multiprocessors) {
  constexpr int64_t kMostSimulated = 1 << 14;
  double all = 0;
  for (const double tile : tiles) all += tile * static_cast<double>(others);
  if (static_cast<int64_t>(tiles.size()) * others > kMostSimulated) return all / multiprocessors;
  std::priority_queue<double, std::vector<double>, std::greater<>> free;
  for (int i = 0; i < multiprocessors; ++i) free.push(0);
  double last = 0;
  for (auto tile = tiles.rbegin(); tile != tiles.rend(); ++tile) {
    for (int64_t other = 0; other < others; ++other) {
      const double end = free.top() + *tile;
      free.pop();
      free.push(end);
      last = std::max(last, end);
    }
  }
  return last;
}

}  // namespace

int hopper_groups(const StepBuilder& builder, const AttentionForm& form, const HopperScores& scores,
                  int keys, int most) {
  Expr others = product_of(builder.pool(), extents_of(builder.pool(), form.others));
  Expr rows = form.row->extent();
  if (!known(others) || !known(rows) || !known(form.rows.length())) return most;
  const Visits visits(builder.pool(), form, scores, keys);
  int best = most;
  double least = HUGE_VAL;
  for (int groups = most; groups >= 1; --groups) {
    const int64_t height = groups * kGroupRows;
    std::vector<double> tiles;
    for (int64_t first = 0; first < rows->integer; first += height) {
      const int64_t last = std::min(first + height, rows->integer) - 1;
      tiles.push_back(kRowTileTime +
                      kKeyTileTimes[groups - 1] * static_cast<double>(visits.of(first, last)));
    }
    const double time = time_of(tiles, others->integer, builder.target.multiprocessors);
    if (time < kGain * least) {
      best = groups;
      least = time;
    }
  }
  return best;
}

}  // namespace redfuser
