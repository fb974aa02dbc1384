#include "codegen/cluster_product/cluster_shape.h"

#include <algorithm>
#include <cmath>

#include "codegen/core/tma_tile.h"

namespace redfuser::codegen {

int stage_bytes(const ClusterForm& form, const ClusterConfig& config) {
  const int parts = form.has_parts() ? 2 : 1;
  return (config.rows + parts * form.products() * config.columns) * TmaTile::kSlabRowBytes;
}

int stages_of(const ClusterForm& form, const ClusterConfig& config) {
  const int ring = config.resident > 1 ? ClusterConfig::kSharedRing : ClusterConfig::kWholeRing;
  return std::min((ring << 10) / stage_bytes(form, config), ClusterConfig::kMostStages);
}

int depth_of(const ClusterForm& form) {
  return TmaTile::kSlabRowBytes / static_cast<int>(size_of(form.call().dtype));
}

int64_t steps_of(const ClusterForm& form) {
  const int depth = depth_of(form);
  return (form.call().k->integer + depth - 1) / depth;
}

double blocks_of(const ClusterForm& form, const ClusterConfig& config, int64_t rows) {
  return std::ceil(static_cast<double>(rows) / config.lines) *
         std::ceil(static_cast<double>(form.call().n->integer) / config.columns) * config.blocks;
}

double room_of(const ClusterConfig& config, const Target& target) {
  constexpr double kFilled = 0.9;  // the share of multiprocessors that larger clusters fill
  return (config.blocks > 2 ? kFilled : 1) * config.resident * target.multiprocessors;
}

int cluster_threads(const ClusterForm& form, const ClusterConfig& config) {
  constexpr int kLoadThreads = 32, kSplitThreads = 96;
  return config.rows * 2 + kLoadThreads + (form.has_parts() ? kSplitThreads : 0);
}

int cluster_shared_bytes(const ClusterForm& form, const ClusterConfig& config) {
  constexpr int kAlignment = 1024;
  const int barriers = form.has_parts() ? 24 : 16;  // bytes of a stage
  const int stages = stages_of(form, config);
  const int sums = config.lines * (form.products() * config.columns + 8) * 4;
  return kAlignment + std::max(stages * stage_bytes(form, config), sums) + stages * barriers;
}

}  // namespace redfuser::codegen
