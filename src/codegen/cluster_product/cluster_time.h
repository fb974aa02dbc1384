// The estimated time of product_cluster.
#pragma once

#include "codegen/cluster_product/cluster_config.h"

namespace redfuser::codegen {

// Microseconds of a configuration for `rows` rows.
double cluster_time(const ClusterForm& form, const ClusterConfig& config, int64_t rows,
                    const KnownSizes& sizes, const Target& target);

}  // namespace redfuser::codegen
