// The configurations of two chained products, with their estimated times.
#pragma once

#include <vector>

#include "codegen/chain/chain_form.h"
#include "codegen/core/kernel_config.h"

namespace redfuser::codegen {

inline constexpr const char* kChainFamily = "product_chain";

struct ChainConfig {
  static constexpr int kGroups = 4;  // warpgroups that multiply

  int rows = 16;     // of a slab, a multiple of 8
  int chunks = 1;    // of 64 columns of the first product that a block makes
  int blocks = 1;    // of a cluster
  int clusters = 1;  // that divide the columns of a slab

  Parameters parameters() const {
    return {{"rows", rows}, {"chunks", chunks}, {"blocks", blocks}, {"clusters", clusters}};
  }
  static ChainConfig of(const KernelConfig& choice);
};

// Stages of the ring, and dynamic shared memory of a block, as src/device/product/chain_tile.cuh
// divides it. No stages: the configuration does not fit.
int chain_stages(const ChainForm& form, const ChainConfig& config, const Target& target);
int chain_shared_bytes(const ChainForm& form, const ChainConfig& config, int stages);

// Where one kernel computes the chain: it has at most `most` rows, and more than the kernels of
// fewer rows.
struct ChainClass {
  int64_t most;
  ir::Expr when;  // a bool over sizes
};
std::vector<ChainClass> chain_classes(ir::ExprPool& pool, const ChainForm& form);

// All configurations that fit, for `rows` rows, the fastest by estimate first.
std::vector<Candidate> chain_choices(const ChainForm& form, int64_t rows, const Target& target);

}  // namespace redfuser::codegen
