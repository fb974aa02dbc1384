#include "codegen/attention/mma/split_kv_cost.h"

#include <algorithm>
#include <cmath>

#include "codegen/attention/element_work.h"
#include "codegen/attention/mma/mma_products.h"
#include "select/overlap.h"

namespace redfuser::codegen {
namespace {

// All constants are fitted to the times of graphs drawn at random, on an H200. Microseconds at
// kFittedClock: of a kernel, of a block, of a step's latency, of a count of who is last, and of
// each state that is merged.
constexpr double kStartTime = 3.6, kBlockTime = 0.85, kStepTime = 0.62;
constexpr double kMergeTime = 0.72, kStateTime = 0.093;
// Of a warp and key: products of 128 columns, and elements.
constexpr double kProductsTime = 4.7e-3, kElementsTime = 1.1e-3;
constexpr ElementCost kElementCost = {0.83, 3.3, 1.9};
constexpr double kColumns = 128;
// What operands take that are converted or split, of those that the matrix units read as they are.
constexpr double kConverted = 2;
// Warps of a block and blocks of a multiprocessor share its units, to these powers.
constexpr double kWarpsPower = 0.62, kBlocksPower = 0.38;
// Bytes that a multiprocessor takes by TMA in a microsecond.
constexpr double kTmaRate = 75e3;
// Turns of blocks overlap.
constexpr double kTurnsPower = 0.86;

// What TMA takes a row of keys or values for. Rows that start inside a sector of L2 take longer
// than whole slabs do (H200: 1896 keys of 40 columns take 42 us where 27 were estimated by bytes).
double copied_bytes(double row_bytes) {
  constexpr double kSector = 32, kInside = 1.6;
  if (std::fmod(row_bytes, kSector) == 0) return row_bytes;
  return kInside * TmaTile::kSlabRowBytes * std::ceil(row_bytes / TmaTile::kSlabRowBytes);
}

}  // namespace

double split_kv_time(StepBuilder& builder, const AttentionSpec& form, const SplitKvConfig& config,
                     const KnownSizes& sizes) {
  const select::Machine& machine = builder.target;
  const MmaProducts products(builder.target, form);
  ir::ExprPool& pool = builder.pool();
  const int64_t rows = form.row ? sizes.of(form.row->extent()) : 1;
  const int64_t tiles = (rows + split_rows(form) - 1) / split_rows(form);
  const int64_t others = sizes.of(product_of(pool, extents_of(pool, form.others)));
  const int64_t groups = std::max<int64_t>(tiles * others, 1);
  const int64_t keys = sizes.of(form.rows.length());
  const int64_t slots = int64_t{1} * config.blocks * machine.multiprocessors;
  const int64_t segments = std::clamp<int64_t>(
      slots / groups, 1, std::min<int64_t>(keys / (2 * config.step()) + 1, Segments::kMax));
  const int64_t blocks = groups * segments;
  const double at_once = std::clamp(static_cast<double>(blocks) / machine.multiprocessors, 1.0,
                                    static_cast<double>(config.blocks));
  const double visited = kWarpRows * mean_visits(pool, form, split_rows(form), kWarpRows, sizes);
  const double steps = std::ceil(visited / static_cast<double>(segments) / config.step());
  const auto depth = static_cast<double>(form.depth->extent()->integer);
  const auto column = static_cast<double>(form.column->extent()->integer);
  const double columns =
      products.score_work() * products.key.columns + products.value_work() * products.value.columns;
  const double work =
      config.keys *
      (kProductsTime * columns / kColumns + kElementsTime * kElementCost.of(element_work(form))) *
      (products.native() ? 1 : kConverted);
  const double share = std::pow(config.warps, kWarpsPower) * std::pow(at_once, kBlocksPower);
  const double key_bytes = static_cast<double>(size_of(form.key->dtype)) * depth +
                           static_cast<double>(size_of(form.value->dtype)) * column;
  const double box_bytes = copied_bytes(depth * size_of(form.key->dtype)) +
                           copied_bytes(column * size_of(form.value->dtype));
  const double step = pace(machine) * select::overlapped(work * share, kStepTime) +
                      (config.boxed ? box_bytes * config.step() * at_once / kTmaRate : 0);
  const double turns = std::ceil(static_cast<double>(blocks) / static_cast<double>(slots));
  const double waiting = (kBlockTime + steps * step) * std::pow(turns, kTurnsPower);
  const double memory =
      key_bytes * static_cast<double>(keys) * static_cast<double>(others) / machine.dram_rate;
  const double cache = key_bytes * visited * static_cast<double>(groups) / machine.l2_rate();
  const double merge = segments > 1 ? kMergeTime + kStateTime * static_cast<double>(segments) : 0;
  const double scattered = static_cast<double>(groups) * visited * scattered_columns(pool, form) /
                           machine.multiprocessors;
  return kStartTime +
         std::max({memory, cache, waiting, machine.microseconds(kScatteredCycles * scattered)}) +
         merge;
}

}  // namespace redfuser::codegen
