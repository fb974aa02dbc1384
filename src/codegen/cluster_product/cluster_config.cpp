#include "codegen/cluster_product/cluster_config.h"

#include <algorithm>
#include <cmath>

#include "codegen/core/tma_tile.h"
#include "select/by_time.h"

namespace redfuser::codegen {
namespace {

constexpr int kSlabRowBytes = TmaTile::kSlabRowBytes;  // of a stage
constexpr int64_t kMostRows = 1024;  // of one product; other tiles are as fast for more
constexpr int64_t kMostGrid = 65535;
constexpr int kWidth = 8;  // elements of an aligned access

int stage_bytes(const ClusterForm& form, const ClusterConfig& config) {
  return (config.rows + form.products() * config.columns) * kSlabRowBytes;
}

int stages_of(const ClusterForm& form, const ClusterConfig& config) {
  const int ring = config.resident > 1 ? ClusterConfig::kSharedRing : ClusterConfig::kWholeRing;
  return std::min((ring << 10) / stage_bytes(form, config), ClusterConfig::kMostStages);
}

// Elements of a stage.
int depth_of(const ClusterForm& form) {
  return kSlabRowBytes / static_cast<int>(size_of(form.call().dtype));
}

int64_t steps_of(const ClusterForm& form) {
  const int depth = depth_of(form);
  return (form.call().k->integer + depth - 1) / depth;
}

bool fits(const ClusterForm& form, const ClusterConfig& config, const Target& target) {
  // Sums of a thread, alone on its multiprocessor or not.
  constexpr int kMostColumns = 256, kMostShared = 128;
  const int columns = form.products() * config.columns;
  // A stage of 8-bit floats has sums of its own.
  if (columns * (form.has_codes() ? 2 : 1) > kMostColumns) return false;
  if (config.resident > 1 && config.rows > 64 && columns > kMostShared) return false;
  return config.lines % config.blocks == 0 && config.blocks <= steps_of(form) &&
         stages_of(form, config) >= 2 && cluster_shared_bytes(form, config) <= target.shared_bytes;
}

// Blocks of one batch.
double blocks_of(const ClusterForm& form, const ClusterConfig& config, int64_t rows) {
  return std::ceil(static_cast<double>(rows) / config.lines) *
         std::ceil(static_cast<double>(form.call().n->integer) / config.columns) * config.blocks;
}

// Blocks that run at once: more would wait for the exchange of the first ones.
double room_of(const ClusterConfig& config, const Target& target) {
  constexpr double kFilled = 0.9;  // the share of multiprocessors that larger clusters fill
  return (config.blocks > 2 ? kFilled : 1) * config.resident * target.multiprocessors;
}

// Microseconds. Constants are fitted to products of 1 to 1024 rows on an H200.
double cluster_time(const ClusterForm& form, const ClusterConfig& config, int64_t rows,
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
  const double stage = (config.lines + products * config.columns) * kSlabRowBytes;
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

// Rows of a tile that exist where there are `rows`, a multiple of 8 for each block.
int lines_of(int64_t rows, int tile, int blocks) {
  const int64_t unit = std::max(8, blocks);
  return static_cast<int>(std::min<int64_t>((rows + unit - 1) / unit * unit, tile));
}

}  // namespace

std::optional<ClusterForm> cluster_form(const ir::Graph& graph, const Target& target,
                                        const std::vector<ProductCall>& calls) {
  constexpr size_t kMostProducts = 3;
  const ProductCall& call = calls[0];
  const bool halves = call.dtype == DType::Float16 || call.dtype == DType::BFloat16;
  const bool codes = call.dtype == DType::Float8E4M3FN;
  if ((!halves && !codes) || target.architecture != 90 || target.portable) return std::nullopt;
  if (calls.size() > kMostProducts || !call.a_column->is_constant(1)) return std::nullopt;
  if (!call.n->is_constant() || !call.k->is_constant() || call.k->integer < 1) return std::nullopt;
  if (!call.batch->is_constant() || call.batch->integer > kMostGrid) return std::nullopt;
  ClusterForm form{&calls};
  form.by_rows = !call.b_column->is_constant(1);
  if (codes && !form.by_rows) return std::nullopt;
  for (const ProductCall& each : calls) {
    if (!(form.by_rows ? each.b_row : each.b_column)->is_constant(1)) return std::nullopt;
  }
  // Rows that are there as well arrive sooner between the columns.
  form.given = !call.a.is_given(graph) &&
               std::all_of(calls.begin(), calls.end(),
                           [&](const auto& each) { return each.b.is_given(graph); });
  return form;
}

ClusterConfig ClusterConfig::of(const KernelConfig& choice) {
  return {choice.at("rows"), choice.at("lines"), choice.at("columns"), choice.at("blocks"),
          choice.at("resident")};
}

int cluster_shared_bytes(const ClusterForm& form, const ClusterConfig& config) {
  constexpr int kAlignment = 1024, kBarriers = 16;
  const int stages = stages_of(form, config);
  const int sums = config.lines * (form.products() * config.columns + 8) * 4;
  return kAlignment + std::max(stages * stage_bytes(form, config), sums) + stages * kBarriers;
}

std::vector<ClusterClass> cluster_classes(ir::ExprPool& pool, const ClusterForm& form) {
  const ir::Expr rows = form.call().m;
  const auto at_most = [&](int64_t count) {
    return pool.make(ir::ExprOp::LessEqual, {rows, pool.integer(count)});
  };
  if (rows->is_constant()) {
    if (rows->integer < 1 || rows->integer > kMostRows) return {};
    return {{rows->integer, pool.boolean(true)}};
  }
  std::vector<ClusterClass> classes;
  ir::Expr more = pool.boolean(true);
  for (const int64_t most : {32, 64, 128, 256, 512}) {
    classes.push_back({most, pool.make(ir::ExprOp::And, {at_most(most), more})});
    more = pool.make(ir::ExprOp::Not, {at_most(most)});
  }
  return classes;
}

std::vector<Candidate> cluster_choices(const ClusterForm& form, int64_t rows,
                                       const KnownSizes& sizes, const Target& target) {
  std::vector<Candidate> choices;
  const double batch = static_cast<double>(std::max<int64_t>(sizes.of(form.call().batch), 1));
  for (const int tile : {64, 128}) {
    if (tile > 64 && rows <= 64) continue;
    for (const int columns : {64, 128, 256}) {
      for (const int blocks : {1, 2, 4, 8}) {
        for (const int resident : {1, 2}) {
          const ClusterConfig config{tile, lines_of(rows, tile, blocks), columns, blocks, resident};
          if (!fits(form, config, target)) continue;
          if (batch * blocks_of(form, config, rows) > room_of(config, target)) continue;
          choices.push_back({{kClusterProductFamily, config.parameters()},
                             cluster_time(form, config, rows, sizes, target)});
        }
      }
    }
  }
  return select::by_time(std::move(choices));
}

}  // namespace redfuser::codegen
