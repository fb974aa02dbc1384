// Chooses the height of row tiles by simulating the SMs: few tiles leave SMs idle, and a mask makes
// tiles unequal.
#include "codegen/attention/hopper/cost.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "codegen/attention/element_work.h"
#include "codegen/attention/visited_tiles.h"
#include "select/overlap.h"

namespace redfuser::codegen {
namespace {

// Time of a K/V tile for 1, 2 and 3 consumer warpgroups, and the fixed time of a row tile. Only
// ratios matter; they are estimates from the throughput of two and three warpgroups.
constexpr double kKeyTileTimes[] = {1.0, 1.5, 2.0}, kRowTileTime = 0.7;
constexpr double kGain = 0.9;  // a smaller row tile must take at most this share of the time
// Constants of the time are fitted to graphs drawn at random, on an H200. Microseconds at
// kFittedClock: of a kernel; of 128 keys' products by 256 columns, of their elements and of strips
// of the scores, in shared memory or not; of a tile's latency and of a row tile besides.
constexpr double kStartTime = 4.1, kProductsTime = 1.12, kElementsTime = 0.25;
constexpr double kStripTime = 0.68, kDirectStripTime = 1.07;
constexpr double kTileLatency = 0.24, kRowTime = 0.74, kAloneRowTime = 1.0;
constexpr double kKeys = 128, kColumns = 256, kMoreColumns = 29;
constexpr ElementCost kElementCost = {0.5, 4.75, 0};
// Of 1, 2 and 3 groups.
constexpr double kGroupTimes[] = {1, 1.36, 1.74};

// Time until the last SM is done, if each takes the next row tile when it becomes free.
double time_of(const std::vector<double>& tiles, int64_t others, int multiprocessors) {
  constexpr int64_t kMaxSimulated = 1 << 14;
  double all = 0;
  for (const double tile : tiles) all += tile * static_cast<double>(others);
  if (static_cast<int64_t>(tiles.size()) * others > kMaxSimulated) return all / multiprocessors;
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

// For row tiles of so many groups: a row tile's own time and that of its visits.
double time_of(const VisitedTiles& visits, int groups, double row_time, double tile_time,
               int64_t rows, int64_t others, int multiprocessors) {
  const int64_t height = groups * Warpgroup::kRows;
  std::vector<double> tiles;
  for (int64_t first = 0; first < rows; first += height) {
    const int64_t last = std::min(first + height, rows) - 1;
    tiles.push_back(row_time + tile_time * static_cast<double>(visits.of(first, last)));
  }
  return time_of(tiles, others, multiprocessors);
}

}  // namespace

int hopper_queries(const StepBuilder& builder, const AttentionSpec& form,
                   const HopperScores& scores, int groups) {
  constexpr int64_t kManyTiles = 4;  // of a multiprocessor
  const KnownSizes sizes;
  const int64_t others =
      sizes.of(product_of(builder.pool(), extents_of(builder.pool(), form.others)));
  const int64_t rows = sizes.of(form.row->extent());
  if (!scores.mask.skips() || others <= 0 || rows <= 0) return 2;
  const int64_t tiles =
      others * ((rows + groups * Warpgroup::kRows - 1) / (groups * Warpgroup::kRows));
  return tiles < kManyTiles * builder.target.multiprocessors ? 1 : 2;
}

int choose_warpgroups(const StepBuilder& builder, const AttentionSpec& form,
                      const HopperScores& scores, int keys, int most) {
  const KnownSizes sizes;
  const int64_t others =
      sizes.of(product_of(builder.pool(), extents_of(builder.pool(), form.others)));
  const int64_t rows = sizes.of(form.row->extent());
  if (others <= 0 || rows <= 0 || sizes.of(form.rows.length()) <= 0) return most;
  const VisitedTiles visits(builder.pool(), form, scores.mask, keys, sizes);
  int best = most;
  double least = HUGE_VAL;
  for (int groups = most; groups >= 1; --groups) {
    const double time = time_of(visits, groups, kRowTileTime, kKeyTileTimes[groups - 1], rows,
                                others, builder.target.multiprocessors);
    if (time < kGain * least) {
      best = groups;
      least = time;
    }
  }
  return best;
}

double hopper_time(const StepBuilder& builder, const AttentionSpec& form,
                   const HopperScores& scores, const HopperConfig& config,
                   const KnownSizes& sizes) {
  const select::Machine& machine = builder.target;
  const VisitedTiles visits(builder.pool(), form, scores.mask, config.keys, sizes);
  const int64_t others =
      sizes.of(product_of(builder.pool(), extents_of(builder.pool(), form.others)));
  const int64_t rows = sizes.of(form.row->extent()), keys = sizes.of(form.rows.length());
  const auto columns =
      static_cast<double>(form.depth->extent()->integer + form.column->extent()->integer);
  const double strips =
      static_cast<double>(scores.strips.size()) * (config.strips ? kStripTime : kDirectStripTime);
  const double work = config.keys / kKeys * kGroupTimes[config.groups - 1] *
                      (kProductsTime * (columns + kMoreColumns) / kColumns +
                       kElementsTime * kElementCost.of(element_work(form)) + strips);
  const double waits =
      time_of(visits, config.groups, config.queries == 2 ? kRowTime : kAloneRowTime,
              select::overlapped(work, kTileLatency), rows, others, machine.multiprocessors);
  const double bytes =
      static_cast<double>(others) *
      (static_cast<double>(rows + keys) * columns * static_cast<double>(size_of(form.key->dtype)));
  return kStartTime + select::overlapped(pace(machine) * waits, bytes / machine.dram_rate);
}

}  // namespace redfuser::codegen
