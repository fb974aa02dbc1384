// What a configuration of product_cluster takes of the GPU.
#pragma once

#include "codegen/cluster_product/cluster_config.h"

namespace redfuser::codegen {

// Of a stage of the ring, and stages of it, as in src/device/product/cluster_tile.cuh.
int stage_bytes(const ClusterForm& form, const ClusterConfig& config);
int stages_of(const ClusterForm& form, const ClusterConfig& config);

// Terms of a stage, and stages of the contracted axis.
int depth_of(const ClusterForm& form);
int64_t steps_of(const ClusterForm& form);

// Blocks of one batch of so many rows.
double blocks_of(const ClusterForm& form, const ClusterConfig& config, int64_t rows);
// Blocks that run at once: more would wait for the exchange of the first ones.
double room_of(const ClusterConfig& config, const Target& target);

// Threads of a block: they multiply, load, and split floats.
int cluster_threads(const ClusterForm& form, const ClusterConfig& config);
// Dynamic shared memory of a block.
int cluster_shared_bytes(const ClusterForm& form, const ClusterConfig& config);

}  // namespace redfuser::codegen
