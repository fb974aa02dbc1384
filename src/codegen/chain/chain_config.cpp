#include "codegen/chain/chain_config.h"

#include <algorithm>
#include <cmath>

#include "codegen/core/tma_tile.h"
#include "select/by_time.h"

namespace redfuser::codegen {
namespace {

constexpr int kChunk = TmaTile::kSlabColumns, kSlabRowBytes = TmaTile::kSlabRowBytes;
constexpr int64_t kMostRows = 1024;
constexpr int kMostStages = 24;

int64_t chunks_of(int64_t elements) { return (elements + kChunk - 1) / kChunk; }

int64_t second_stages(const ChainForm& form) {
  return (chunks_of(form.width) + form.products() - 1) / form.products();
}

int stage_bytes(const ChainForm& form, const ChainConfig& config) {
  return (config.rows + form.products() * config.chunks * kChunk) * kSlabRowBytes;
}

// Of the mapped columns and of sums.
int64_t kept_bytes(const ChainForm& form, const ChainConfig& config) {
  constexpr int kPad = 4, kFloat = 4;
  const int64_t adders = std::min<int64_t>(chunks_of(form.depth), ChainConfig::kGroups);
  const int64_t first = adders * (form.products() * config.chunks * kChunk + kPad);
  const int64_t second = chunks_of(form.width) * kChunk + kPad;
  return config.rows * (config.chunks * kSlabRowBytes + kFloat * std::max(first, second));
}

int64_t slabs_of(const ChainConfig& config, int64_t rows) {
  return (rows + config.rows - 1) / config.rows;
}

// Blocks that run at once.
double room_of(const ChainConfig& config, const Target& target) {
  // The shares of multiprocessors that clusters fill, by their size.
  constexpr double kLarge = 0.9, kLargest = 0.8;
  const double filled = config.blocks > 8 ? kLargest : config.blocks > 2 ? kLarge : 1;
  return filled * target.multiprocessors;
}

bool fits(const ChainForm& form, const ChainConfig& config, int64_t rows, const Target& target) {
  constexpr int kMostSums = 64;  // of a thread
  if (form.products() * config.chunks * config.rows / 2 > kMostSums) return false;
  const double blocks =
      static_cast<double>(slabs_of(config, rows) * config.blocks * config.clusters);
  if (blocks > room_of(config, target)) return false;
  if (slabs_of(config, rows) * config.blocks > kLaunchCounters) return false;
  return chain_stages(form, config, target) > 0;
}

// Microseconds. Constants are fitted to chains of 16 and 128 rows on an H200, of cold weights.
double chain_time(const ChainForm& form, const ChainConfig& config, int64_t rows,
                  const Target& target) {
  // Of a kernel's start and end, its first loads and the map; of a stage of either product; of an
  // exchange between clusters.
  constexpr double kStart = 2.2, kStep = 0.116, kTile = 0.09, kClusters = 1.3;
  // Bytes that a multiprocessor loads in a cycle: alone, and from other blocks' memory.
  constexpr double kLoaded = 42, kExchanged = 18;
  // Shares of the rates of memory and of L2.
  constexpr double kMemoryShare = 0.68, kCacheShare = 1.8;
  // What a launch saves that loads given weights while the one before it still runs.
  constexpr double kPrefetched = 1.2;
  const double products = form.products();
  const auto steps = static_cast<double>(chunks_of(form.depth));
  const auto tiles = static_cast<double>(chunks_of(form.width));
  const auto slabs = static_cast<double>(slabs_of(config, rows));
  const double own =
      steps * stage_bytes(form, config) + tiles * config.chunks * kChunk * kSlabRowBytes;
  const double weights =
      2.0 * static_cast<double>(form.inner) *
      (products * static_cast<double>(form.depth) + static_cast<double>(form.width)) /
      (kMemoryShare * target.dram_rate);
  const double cache =
      slabs * config.blocks * config.clusters * own / (kCacheShare * target.l2_rate());
  const double loads = std::max({weights, target.microseconds(own / kLoaded), cache});
  const double sums = 4.0 * config.rows * static_cast<double>(form.width);
  const double remote = sums * (config.blocks - 1) / config.blocks;
  const double between =
      config.clusters == 1
          ? 0
          : kClusters + target.microseconds(sums * config.clusters / config.blocks / kLoaded);
  return select::kLaunchTime + kStart - (form.given ? kPrefetched : 0) + loads + steps * kStep +
         tiles * kTile + target.microseconds(remote / kExchanged) + between;
}

}  // namespace

ChainConfig ChainConfig::of(const KernelConfig& choice) {
  return {choice.at("rows"), choice.at("chunks"), choice.at("blocks"), choice.at("clusters")};
}

int chain_stages(const ChainForm& form, const ChainConfig& config, const Target& target) {
  constexpr int kAlignment = 1024, kBarriers = 16;
  const int64_t room = target.shared_bytes - kAlignment - kept_bytes(form, config);
  const int64_t most = std::min<int64_t>(
      std::max<int64_t>(room, 0) / (stage_bytes(form, config) + kBarriers), kMostStages);
  const int64_t all = chunks_of(form.depth) + second_stages(form);
  if (most >= all) return static_cast<int>(all);
  // A stage of the ring is always the same warpgroup's, which keeps one of the first product until
  // its next one is there.
  const int64_t stages = most / ChainConfig::kGroups * ChainConfig::kGroups;
  const bool keeps = chunks_of(form.depth) > ChainConfig::kGroups;
  return static_cast<int>(stages >= (keeps ? 2 : 1) * ChainConfig::kGroups ? stages : 0);
}

int chain_shared_bytes(const ChainForm& form, const ChainConfig& config, int stages) {
  constexpr int kAlignment = 1024, kBarriers = 16;
  return static_cast<int>(kAlignment + kept_bytes(form, config)) +
         stages * (stage_bytes(form, config) + kBarriers);
}

std::vector<ChainClass> chain_classes(ir::ExprPool& pool, const ChainForm& form) {
  ir::Expr rows = form.rows;
  if (rows->is_constant()) {
    if (rows->integer < 1 || rows->integer > kMostRows) return {};
    return {{rows->integer, pool.boolean(true)}};
  }
  std::vector<ChainClass> classes;
  ir::Expr more = pool.boolean(true);
  for (const int64_t most : {16, 32, 64, 128}) {
    ir::Expr below = pool.make(ir::ExprOp::LessEqual, {rows, pool.integer(most)});
    classes.push_back({most, pool.make(ir::ExprOp::And, {below, more})});
    more = pool.make(ir::ExprOp::Not, {below});
  }
  return classes;
}

std::vector<Candidate> chain_choices(const ChainForm& form, int64_t rows, const Target& target) {
  std::vector<Candidate> choices;
  const int64_t all = chunks_of(form.inner);
  for (const int slab : {8, 16, 32, 64}) {
    if (slab > 8 && slab / 2 >= rows) continue;
    for (const int chunks : {1, 2, 3, 4}) {
      for (const int blocks : {1, 2, 4, 8, 16}) {
        const int64_t own = int64_t{chunks} * blocks, clusters = (all + own - 1) / own;
        const bool idle = clusters == 1 && own - all >= chunks;
        if (idle || clusters > target.multiprocessors) continue;
        const ChainConfig config{slab, chunks, blocks, static_cast<int>(clusters)};
        if (!fits(form, config, rows, target)) continue;
        choices.push_back(
            {{kChainFamily, config.parameters()}, chain_time(form, config, rows, target)});
      }
    }
  }
  return select::by_time(std::move(choices));
}

}  // namespace redfuser::codegen
