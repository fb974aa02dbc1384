#include "codegen/attention/mma/flash_mma_select.h"

#include <algorithm>
#include <cmath>

#include "codegen/attention/mma/mma_products.h"
#include "codegen/attention/visited_tiles.h"

namespace redfuser::codegen {
namespace {

constexpr int kMostWarps = 4, kMostKeys = 64, kMaxBlocks = 2;

// `most`, or less where the extent is a smaller constant.
int up_to(ir::Expr extent, int most) {
  if (!extent || !extent->is_constant()) return most;
  return static_cast<int>(
      std::clamp<int64_t>(padded_size(std::min<int64_t>(extent->integer, most)), 16, most));
}

bool fits(const Target& target, const AttentionSpec& form, const FlashMmaConfig& config,
          int blocks) {
  return flash_mma_shared_bytes(target, form, config) <=
         (target.shared_bytes + kBlockReserved) / blocks - kBlockReserved;
}

bool one_tile(const AttentionSpec& form, const FlashMmaConfig& config) {
  ir::Expr length = form.rows.length();
  return length->is_constant() && length->integer <= config.keys;
}

// K/V tiles of a block, averaged over a sample of the row tiles.
double mean_visits(ir::ExprPool& pool, const AttentionSpec& form, const FlashMmaConfig& config,
                   const KnownSizes& sizes) {
  constexpr int64_t kSamples = 16;
  const VisitedTiles visits(pool, form, mask_condition(pool, form), config.keys, sizes);
  const int64_t rows = form.row ? sizes.of(form.row->extent()) : 1;
  const int64_t tiles = (rows + config.rows() - 1) / config.rows();
  const int64_t samples = std::min(tiles, kSamples);
  double sum = 0;
  for (int64_t i = 0; i < samples; ++i) {
    const int64_t first = (2 * i + 1) * tiles / (2 * samples) * config.rows();
    sum += static_cast<double>(visits.of(first, std::min(first + config.rows(), rows) - 1));
  }
  return sum / static_cast<double>(std::max<int64_t>(samples, 1));
}

}  // namespace

int flash_mma_shared_bytes(const Target& target, const AttentionSpec& form,
                           const FlashMmaConfig& config) {
  const MmaProducts products(target, form);
  return products.query.bytes(config.rows()) +
         config.stages * (products.key.bytes(config.keys) + products.value.bytes(config.keys)) +
         config.warps * products.staged_bytes(config.keys);
}

std::optional<FlashMmaConfig> flash_mma_config(const Target& target, const AttentionSpec& form) {
  const int64_t size = std::max(form.depth->extent()->integer, form.column->extent()->integer);
  if (size > kLargestPortable) return std::nullopt;
  FlashMmaConfig config;
  config.warps = form.row ? up_to(form.row->extent(), kMostWarps * 16) / 16 : 1;
  config.keys = up_to(form.rows.length(), kMostKeys);
  if (one_tile(form, config) || !fits(target, form, config, kMaxBlocks)) config.stages = 1;
  if (!fits(target, form, config, 1)) return std::nullopt;
  return config;
}

std::vector<FlashMmaConfig> flash_mma_configs(const Target& target, const AttentionSpec& form) {
  std::vector<FlashMmaConfig> result;
  const auto whole = flash_mma_config(target, form);
  if (!whole) return result;
  for (const int warps : {whole->warps, 2, 1}) {
    for (const int keys : {whole->keys, 32}) {
      for (const int stages : {2, 1}) {
        const FlashMmaConfig config{warps, keys, stages};
        if (warps > whole->warps || keys > whole->keys || !fits(target, form, config, 1)) continue;
        if (stages > 1 && one_tile(form, config)) continue;
        const bool known = std::any_of(result.begin(), result.end(), [&](const auto& other) {
          return other.parameters() == config.parameters();
        });
        if (!known) result.push_back(config);
      }
    }
  }
  return result;
}

double flash_mma_time(StepBuilder& builder, const AttentionSpec& form, const FlashMmaConfig& config,
                      const KnownSizes& sizes) {
  constexpr double kStart = 5265, kTileLatency = 1930.5;  // cycles of a block
  constexpr double kScoreSpecials = 2.8;                  // the time of a score in exponentials
  const Target& target = builder.target;
  constexpr int kMostThreads = 512;  // by their registers
  const MmaProducts products(target, form);
  const auto count = [&](ir::Expr size, int64_t unit) {
    return static_cast<double>((sizes.of(size) + unit - 1) / unit);
  };
  ir::Expr others = product_of(builder.pool(), extents_of(builder.pool(), form.others));
  const double row_tiles = form.row ? count(form.row->extent(), config.rows()) : 1;
  const double blocks = row_tiles * count(others, 1);
  const double tiles = mean_visits(builder.pool(), form, config, sizes);
  const double pairs = 1.0 * config.rows() * config.keys;
  const double flops = 2 * pairs *
                       (products.key.columns * products.score_work() +
                        products.value.columns * products.value_work());
  const double work =
      (flops / target.warp_tensor_rate() + kScoreSpecials * pairs / target.special_rate()) *
      target.multiprocessors;
  const int shared = flash_mma_shared_bytes(target, form, config);
  const double resident = std::max(
      1, std::min(target.shared_bytes / std::max(shared, 1), kMostThreads / (config.warps * 32)));
  const double slots = resident * target.multiprocessors;
  const double waves = std::ceil(blocks / slots);
  const double at_once = std::min(resident, std::ceil(blocks / target.multiprocessors));
  const double wave = target.microseconds(kStart) +
                      tiles * std::max(target.microseconds(kTileLatency), at_once * work);
  const double bytes = blocks * tiles * config.keys *
                       (products.key.columns * products.key.element +
                        products.value.columns * products.value.element);
  return std::max(waves * wave, bytes / target.dram_rate);
}

}  // namespace redfuser::codegen
