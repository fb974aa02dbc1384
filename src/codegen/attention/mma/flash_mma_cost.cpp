#include "codegen/attention/mma/flash_mma_cost.h"

#include <algorithm>
#include <cmath>

#include "codegen/attention/element_work.h"
#include "codegen/attention/mma/mma_products.h"
#include "select/overlap.h"

namespace redfuser::codegen {
namespace {

// All constants are fitted to the times of graphs drawn at random, on an H200. Microseconds at
// kFittedClock: of a kernel, of a block, and of a tile's latency: itself, its products of 64 keys
// and 128 columns, its 64 elements of a row, and a load that no other stage hides.
constexpr double kStartTime = 4, kBlockTime = 0.86;
constexpr double kTileTime = 0.51, kProductsTime = 0.62, kElementsTime = 0.96, kLoadTime = 0.59;
constexpr double kKeys = 64, kColumns = 128;
// Of a load of kLoadBytes that a thread issues for a tile, beyond the first kHiddenLoads.
constexpr double kIssueTime = 0.045, kHiddenLoads = 16, kLoadBytes = 16, kWarp = 32;
// Of the machine's rate of products; scores of a multiprocessor and microsecond; bytes of tiles
// that all blocks read in a microsecond.
constexpr double kProductShare = 1.22, kElementRate = 4.3e4, kTileRate = 2.6e6;
constexpr ElementCost kElementCost = {0.27, 0.91, 0.82};
// Registers of a thread: its own, for 128 columns of the result, for 64 keys' scores.
constexpr double kOwnRegisters = 64, kColumnRegisters = 19, kScoreRegisters = 89;

}  // namespace

double flash_mma_time(StepBuilder& builder, const AttentionSpec& form, const FlashMmaConfig& config,
                      const KnownSizes& sizes) {
  const select::Machine& machine = builder.target;
  const MmaProducts products(builder.target, form);
  const auto count = [&](ir::Expr size, int64_t unit) {
    return static_cast<double>((sizes.of(size) + unit - 1) / unit);
  };
  ir::Expr others = product_of(builder.pool(), extents_of(builder.pool(), form.others));
  const double row_tiles = form.row ? count(form.row->extent(), config.rows()) : 1;
  const double blocks = row_tiles * count(others, 1);
  const double tiles = mean_visits(builder.pool(), form, config.rows(), config.keys, sizes);
  const double columns =
      products.key.columns * products.score_work() + products.value.columns * products.value_work();
  const double element = kElementCost.of(element_work(form));
  const double pairs = 1.0 * config.rows() * config.keys;
  const double work = 2 * pairs * columns * machine.multiprocessors /
                          (kProductShare * machine.tensor_rate(DType::Float16)) +
                      pace(machine) * pairs * element / kElementRate;
  const double registers = kOwnRegisters + kColumnRegisters * products.value.columns / kColumns +
                           kScoreRegisters * config.keys / kKeys;
  const int shared = std::max(flash_mma_shared_bytes(builder.target, form, config), 1);
  constexpr double kThreads = select::kRegistersOfMultiprocessor / 32.0;
  const double resident =
      std::clamp(std::min<double>(machine.shared_bytes / shared,
                                  std::floor(kThreads / registers / config.warps)),
                 1.0, 1.0 * select::kBlocksOfMultiprocessor);
  const double turns = std::ceil(blocks / (resident * machine.multiprocessors));
  const double at_once = std::clamp(blocks / machine.multiprocessors, 1.0, resident);
  const double tile_bytes = config.keys * (products.key.columns * products.key.element +
                                           products.value.columns * products.value.element);
  const double loads = tile_bytes / (kLoadBytes * kWarp * config.warps);
  const double latency =
      pace(machine) *
          (kTileTime +
           config.keys / kKeys * (kProductsTime * columns / kColumns + kElementsTime * element) +
           kIssueTime * std::max(0.0, loads - kHiddenLoads)) +
      (config.stages == 1 ? kLoadTime : 0);
  const double block =
      pace(machine) * kBlockTime + tiles * select::overlapped(latency, at_once * work);
  const double bytes = blocks * tiles * tile_bytes;
  const double scattered = blocks * tiles * config.keys * scattered_columns(builder.pool(), form) /
                           machine.multiprocessors;
  return kStartTime + std::max({turns * block, pace(machine) * bytes / kTileRate,
                                machine.microseconds(kScatteredCycles * scattered)});
}

}  // namespace redfuser::codegen
