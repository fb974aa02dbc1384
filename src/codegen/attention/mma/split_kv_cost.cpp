#include "codegen/attention/mma/split_kv_cost.h"

#include <algorithm>
#include <cmath>

#include "codegen/attention/element_work.h"
#include "codegen/attention/mma/mma_products.h"

namespace redfuser::codegen {
namespace {

// All constants are fitted to the times of graphs drawn at random and of decoding, on an H200 and
// an H100. Microseconds at kFittedClock: of a kernel, of a count of who is last, of each state that
// is merged, and of an element of a block's result.
constexpr double kStartTime = 4.48, kMergeTime = 1.8, kStateTime = 0.118, kResultTime = 6.7e-4;
// Of a warp and key: products of 128 columns, and elements.
constexpr double kProductsTime = 2.1e-3, kElementsTime = 6.9e-3;
constexpr ElementCost kElementCost = {0.15, 1.95, 1.7};
constexpr double kColumns = 128;
// What operands take that are converted or split, of those that the matrix units read as they are.
constexpr double kConverted = 2.1;
// Warps of a block and blocks of a multiprocessor share its units, to these powers.
constexpr double kWarpsPower = 0.64, kBlocksPower = 0.6;
// Bytes that a multiprocessor takes by TMA in a microsecond.
constexpr double kTmaRate = 135e3;

// Blocks of a multiprocessor: as many as it has room for.
int resident_blocks(StepBuilder& builder, const AttentionSpec& form, const SplitKvConfig& config) {
  constexpr int kWarp = 32, kRegisters = 128;
  const int threads = kWarp * config.warps;
  const int bytes = split_shared_bytes(builder.target, form, config) + SplitKvLayout::kStatic;
  return std::max(
      config.blocks,
      std::min({select::kThreadsOfMultiprocessor / threads,
                select::kRegistersOfMultiprocessor / (threads * kRegisters),
                (builder.target.shared_bytes + kBlockReserved) / (bytes + kBlockReserved)}));
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
  const auto resident = static_cast<double>(resident_blocks(builder, form, config));
  const double at_once =
      std::clamp(static_cast<double>(blocks) / machine.multiprocessors, 1.0, resident);
  const double visited = kWarpRows * mean_visits(pool, form, split_rows(form), kWarpRows, sizes);
  const double steps = std::ceil(visited / static_cast<double>(segments) / config.step());
  const auto depth = static_cast<double>(form.depth->extent()->integer);
  const auto column = static_cast<double>(form.column->extent()->integer);
  const double columns = products.score_work() * depth + products.value_work() * column;
  const double work =
      config.keys *
      (kProductsTime * columns / kColumns + kElementsTime * kElementCost.of(element_work(form))) *
      (products.native() ? 1 : kConverted);
  const double share = std::pow(config.warps, kWarpsPower) * std::pow(at_once, kBlocksPower);
  const double key_bytes = static_cast<double>(size_of(form.key->dtype)) * depth +
                           static_cast<double>(size_of(form.value->dtype)) * column;
  const double step = pace(machine) * work * share +
                      (config.boxed ? key_bytes * config.step() * at_once / kTmaRate : 0);
  const double turns =
      std::ceil(static_cast<double>(blocks) / (resident * machine.multiprocessors));
  const double result = kResultTime * split_rows(form) * column * at_once;
  const double waiting = turns * (steps * step + result);
  const double memory =
      key_bytes * static_cast<double>(keys) * static_cast<double>(others) / machine.dram_rate;
  const double cache = key_bytes * visited * static_cast<double>(groups) / machine.l2_rate();
  const double merge = segments > 1 ? kMergeTime + kStateTime * static_cast<double>(segments) : 0;
  return kStartTime + std::max({memory, cache, waiting}) + merge;
}

}  // namespace redfuser::codegen
