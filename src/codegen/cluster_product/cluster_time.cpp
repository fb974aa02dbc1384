#include "codegen/cluster_product/cluster_time.h"

#include <algorithm>
#include <cmath>

#include "codegen/cluster_product/cluster_shape.h"
#include "codegen/core/tma_tile.h"

namespace redfuser::codegen {
namespace {

// Of floats of 8 and 16 bits. Constants are fitted to products of 1 to 1024 rows on an H200.
double halves_time(const ClusterForm& form, const ClusterConfig& config, int64_t rows,
                   const KnownSizes& sizes, const Target& target) {
  // Of a kernel's start and end; of an exchange, to which each block adds a share.
  constexpr double kStart = 2.27, kExchange = 0.58, kExchangeShare = 0.19;
  // Bytes that a multiprocessor loads in a cycle: alone, and from other blocks' memory.
  constexpr double kLoaded = 50.9, kExchanged = 7;
  // Of a stage of a ring, from its load to its release, and of each of its bytes.
  constexpr double kStage = 1.46, kStageByte = 1.04e-5;
  // Shares of the rates of memory, of L2 and of the tensor cores that such products reach.
  constexpr double kMemoryShare = 0.687, kCacheShare = 1.68, kTensorShare = 1.09;
  // What a launch of few rows saves that loads given columns while the one before it still runs.
  constexpr double kPrefetched = 1.2;
  constexpr int64_t kFewRows = 128;
  // Values of a plain product that a thread finishes in a microsecond.
  constexpr double kFinished = 78;
  constexpr EpilogueCost kEpilogue = {1.5, 4.9, 0.81};
  // Clusters of so many blocks may be put on half of the multiprocessors where two blocks fit.
  constexpr int kPacked = 4;
  const ProductCall& call = form.call();
  const auto n = static_cast<double>(call.n->integer), k = static_cast<double>(call.k->integer);
  const double batch = static_cast<double>(std::max<int64_t>(sizes.of(call.batch), 1));
  const double products = form.products();
  const double blocks = batch * blocks_of(form, config, rows);
  const double together = std::max(std::ceil(blocks / target.multiprocessors),
                                   config.blocks >= kPacked ? 1.0 * config.resident : 1.0);
  const double steps = std::ceil(static_cast<double>(steps_of(form)) / config.blocks);
  const double stage = (config.lines + products * config.columns) * TmaTile::kSlabRowBytes;
  const auto bytes = static_cast<double>(size_of(call.dtype));
  const double weights = batch * products * n * k * bytes / (kMemoryShare * target.dram_rate);
  const double cache = blocks * steps * stage / (kCacheShare * target.l2_rate());
  const double loads = together * steps * target.microseconds(stage / kLoaded);
  const double waits = steps * (kStage + kStageByte * stage * together) / stages_of(form, config);
  const double rate = kTensorShare * target.tensor_rate(call.dtype) / target.multiprocessors;
  const double multiply =
      together * steps * 2.0 * config.rows * products * config.columns * depth_of(form) / rate;
  const double sums = config.lines * products * config.columns;
  const double remote = 4 * sums * (config.blocks - 1) / config.blocks;
  const double exchange = config.blocks == 1
                              ? 0
                              : kExchange + kExchangeShare * config.blocks +
                                    together * target.microseconds(remote / kExchanged);
  const double finish =
      together * sums / config.blocks / (2 * config.rows) * kEpilogue.of(form.epilogue) / kFinished;
  return select::kLaunchTime + kStart - (form.given && rows <= kFewRows ? kPrefetched : 0) +
         std::max({weights, cache, loads, waits, multiply}) + exchange + finish;
}

// Of floats in parts. Constants are fitted to products of 16 to 8192 rows on an H200.
double parts_time(const ClusterForm& form, const ClusterConfig& config, int64_t rows,
                  const KnownSizes& sizes, const Target& target) {
  // Of a kernel's start and end; of a block's that follows another one; of an exchange.
  constexpr double kStart = 2.67, kTurn = 1.39, kExchange = 0.77;
  // Bytes that a multiprocessor loads in a cycle: alone, and from other blocks' memory.
  constexpr double kLoaded = 22.1, kExchanged = 15.4;
  // Of a stage of a ring, from its load to its release, and of each of its bytes.
  constexpr double kStage = 1.66, kStageByte = 1.34e-5;
  // Shares of the rates of memory, of L2 and of the tensor cores.
  constexpr double kMemoryShare = 0.571, kCacheShare = 1.27, kTensorShare = 0.807;
  // Cycles of a stage in which a warpgroup loads rows and adds sums.
  constexpr double kApart = 331;
  // What a launch of few rows saves that loads given columns while the one before it still runs.
  constexpr double kPrefetched = 0.12;
  constexpr int64_t kFewRows = 128;
  // Values of a plain product that a thread finishes in a microsecond.
  constexpr double kFinished = 46.2;
  constexpr EpilogueCost kEpilogue = {0.41, 1, 0.81};
  constexpr int kPacked = 4, kGroupRows = 64, kParts = 3;
  const ProductCall& call = form.call();
  const auto m = static_cast<double>(rows), n = static_cast<double>(call.n->integer);
  const auto k = static_cast<double>(call.k->integer);
  const double batch = static_cast<double>(std::max<int64_t>(sizes.of(call.batch), 1));
  const double products = form.products();
  const double blocks = batch * blocks_of(form, config, rows);
  const double turns = std::ceil(blocks / room_of(config, target));
  const double each = std::max(std::ceil(blocks / target.multiprocessors),
                               config.blocks >= kPacked ? 1.0 * config.resident : 1.0);
  const double together = std::min<double>(each, config.resident);
  const double steps = std::ceil(static_cast<double>(steps_of(form)) / config.blocks);
  const double stage = (config.lines + products * config.columns) * TmaTile::kSlabRowBytes;
  const double bytes = 4 * batch * (m * k + products * n * k + m * n);
  const double memory = bytes / (kMemoryShare * target.dram_rate);
  const double cache = blocks * steps * stage / (kCacheShare * target.l2_rate());
  const double loads = each * steps * target.microseconds(stage / kLoaded);
  const double waits =
      turns * steps * (kStage + kStageByte * stage * together) / stages_of(form, config);
  const double rate = kTensorShare * target.tensor_rate(call.dtype) / target.multiprocessors;
  const double group =
      kParts * 2.0 * kGroupRows * products * config.columns * depth_of(form) / rate;
  const double multiply =
      turns * steps *
      std::max(config.rows / kGroupRows * together * group, group + target.microseconds(kApart));
  const double sums = config.lines * products * config.columns;
  const double remote = 4 * sums * (config.blocks - 1) / config.blocks;
  const double exchange =
      config.blocks == 1 ? 0 : kExchange + together * target.microseconds(remote / kExchanged);
  const double finish = turns * together * sums / config.blocks / (2 * config.rows) *
                        kEpilogue.of(form.epilogue) / kFinished;
  return select::kLaunchTime + kStart - (form.given && rows <= kFewRows ? kPrefetched : 0) +
         (turns - 1) * kTurn + std::max({memory, cache, loads, waits, multiply}) + exchange +
         finish;
}

}  // namespace

double cluster_time(const ClusterForm& form, const ClusterConfig& config, int64_t rows,
                    const KnownSizes& sizes, const Target& target) {
  return form.has_parts() ? parts_time(form, config, rows, sizes, target)
                          : halves_time(form, config, rows, sizes, target);
}

}  // namespace redfuser::codegen
