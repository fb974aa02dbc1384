#include "codegen/row_product/row_product_config.h"

#include <algorithm>
#include <cmath>

#include "select/by_time.h"

namespace redfuser::codegen {
namespace {

constexpr int kDepth = 64, kSlabRowBytes = 128;  // of a stage
constexpr int kRingBytes = 192 << 10, kMostStages = 12;

int stage_bytes(const RowProductForm& form, const RowProductConfig& config) {
  constexpr int kSlab = 64;
  const int columns = form.by_rows() ? form.padded() : (form.padded() + kSlab - 1) / kSlab * kSlab;
  return (config.rows + columns) * kSlabRowBytes;
}

// Ranks of a row, one after the other.
double ranks_of(const RowProductForm& form) {
  double ranks = 0;
  for (const cascade::Accumulator& a : form.rows.accumulators) {
    if (is_ranked(a.reduction)) ranks += static_cast<double>(std::max<int64_t>(a.k, 1));
  }
  return ranks;
}

// The share of the multiprocessors' clusters of two blocks that larger ones find room for.
double filled(const RowProductConfig& config) { return config.blocks > 2 ? 0.9 : 1; }

// Microseconds of a stage of `active` blocks: its loads or its products. A multiprocessor loads
// kLoadBytes in a cycle, all of them kCacheRate times the table's rate of L2; rows come from
// memory.
double stage_time(const RowProductForm& form, const RowProductConfig& config, double active,
                  const Target& target) {
  constexpr double kLoadBytes = 36, kCacheRate = 1.2, kRowShare = 0.5;
  const double share = std::ceil(active / target.multiprocessors),
               bytes = stage_bytes(form, config);
  const double rate = target.tensor_rate(form.dtype) / target.multiprocessors;
  const double multiply = share * 2.0 * config.rows * form.padded() * kDepth / rate;
  const double own = bytes + kRowShare * config.rows * kSlabRowBytes;
  return std::max({multiply, share * target.microseconds(own / kLoadBytes),
                   active * bytes / (kCacheRate * target.l2_rate())});
}

// Constants are fitted to routing of 1 to 65536 rows on an H200.
double row_product_time(StepBuilder& builder, const RowProductForm& form,
                        const RowProductConfig& config, int64_t count, int64_t depth) {
  // Microseconds: of a kernel's start, first loads and end; of the exchange within a cluster, alone
  // and beside as many as there is room for; of rows that lanes have at once, and of a rank of
  // them. Bytes of others' memory that a multiprocessor reads in a cycle.
  constexpr double kStart = 3.3, kExchange = 1.0, kBusyExchange = 2.5, kRows = 0.7, kRank = 0.1;
  constexpr double kExchangeBytes = 64;
  const Target& target = builder.target;
  const double blocks = std::ceil(static_cast<double>(count) / config.rows) * config.blocks;
  const double room = target.multiprocessors * config.resident * filled(config);
  const double waves = std::ceil(blocks / room), active = std::min(blocks, room);
  const double steps = std::ceil(std::ceil(static_cast<double>(depth) / kDepth) / config.blocks);
  const double exchange =
      config.blocks > 1
          ? kExchange + kBusyExchange * std::min(active / target.multiprocessors, 1.0) +
                target.microseconds(4.0 * config.rows * form.padded() / kExchangeBytes)
          : 0;
  const int lanes = lanes_of(form, config, row_width(builder, form.rows));
  const double passes = std::ceil(config.rows / config.blocks / (config.rows * 2.0 / lanes));
  const double rows = passes * (kRows + kRank * ranks_of(form));
  const double memory = 2.0 * (static_cast<double>(count) + form.padded()) *
                        static_cast<double>(depth) / target.dram_rate;
  return select::kLaunchTime + kStart +
         std::max(waves * steps * stage_time(form, config, active, target), memory) +
         waves * (exchange + rows);
}

}  // namespace

RowProductConfig RowProductConfig::of(const KernelConfig& choice) {
  return {choice.at("rows"), choice.at("blocks"), choice.at("resident")};
}

int lanes_of(const RowProductForm& form, const RowProductConfig& config, int width) {
  const int each = config.rows / config.blocks / (config.rows / 16);  // rows of a warp
  int lanes = 32;
  while (lanes > 1 && 32 / lanes < each &&
         form.chunks(lanes / 2, width) * width <= kMostLaneElements) {
    lanes /= 2;
  }
  return lanes;
}

int row_product_shared_bytes(const RowProductForm& form, const RowProductConfig& config) {
  constexpr int kAlignment = 1024, kBarriers = 2 * kMostStages * 8;
  const int ring = kRingBytes / config.resident;
  const int stages = std::min(ring / stage_bytes(form, config), kMostStages);
  return stages * stage_bytes(form, config) + kAlignment + kBarriers;
}

std::vector<Candidate> row_product_choices(StepBuilder& builder, const RowProductForm& form,
                                           int64_t count, int64_t depth) {
  std::vector<Candidate> choices;
  if (count <= 0 || depth < 0) return choices;
  // Two blocks of more columns have too few registers; those of a cluster would share one
  // multiprocessor while others have none.
  constexpr int kFewColumns = 128, kStaticBytes = 8 << 10;
  for (const int rows : {64, 128}) {
    for (const int blocks : {1, 2, 4, 8}) {
      const int most = form.columns <= kFewColumns && blocks == 1 ? 2 : 1;
      for (int resident = 1; resident <= most; ++resident) {
        const RowProductConfig config{rows, blocks, resident};
        const int bytes = row_product_shared_bytes(form, config) + kStaticBytes;
        if (bytes > builder.target.shared_bytes) continue;
        choices.push_back({{kRowProductFamily, config.parameters()},
                           row_product_time(builder, form, config, count, depth)});
      }
    }
  }
  return select::by_time(std::move(choices));
}

}  // namespace redfuser::codegen
