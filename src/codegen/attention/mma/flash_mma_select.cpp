#include "codegen/attention/mma/flash_mma_select.h"

#include <algorithm>

#include "codegen/attention/mma/mma_products.h"

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

}  // namespace redfuser::codegen
