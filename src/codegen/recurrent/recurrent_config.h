// The configurations of recurrent layers (src/device/recurrent), with their estimated times.
#pragma once

#include <vector>

#include "codegen/core/kernel_config.h"
#include "codegen/recurrent/recurrent_form.h"

namespace redfuser::codegen {

// By the blocks that share a direction: any of a grid that run together; more of a cluster than
// every GPU allows, up to that; one.
inline constexpr const char* kGridRecurrentFamily = "recurrent_grid";
inline constexpr const char* kWideRecurrentFamily = "recurrent_wide";
inline constexpr const char* kClusterRecurrentFamily = "recurrent_cluster";
inline constexpr const char* kBlockRecurrentFamily = "recurrent_block";

struct RecurrentConfig {
  static constexpr int kWarps = 8;  // of a block

  int blocks = 1;  // of a cluster, or of a grid, which have the units of a direction
  int batch = 8;   // sequences that they have
  // Tiles of R along the states: those of a warp that are in its registers, and those of a block
  // in shared memory.
  int held = 0, resident = 0;
  bool grid = false;  // the blocks exchange states through memory

  const char* family() const;
  Parameters parameters() const {
    return {{"blocks", blocks},
            {"batch", batch},
            {"held", held},
            {"resident", resident},
            {"grid", grid ? 1 : 0}};
  }
  static RecurrentConfig of(const KernelConfig& choice);
};

// Units of a block: whole vectors of 16 bytes.
int recurrent_units(const RecurrentForm& form, const RecurrentConfig& config);
// The elements of memory that the teams of blocks exchange states through, for a known batch.
int64_t recurrent_exchanged(const RecurrentForm& form, const RecurrentConfig& config);
// Shared memory of a block: LayerConfig::kBytes.
int64_t recurrent_shared_bytes(const RecurrentForm& form, const RecurrentConfig& config);

// Microseconds of the kernel, its launch included, for `steps` steps of `batch` sequences.
double recurrent_time(const RecurrentForm& form, const RecurrentConfig& config,
                      const Target& target, double steps, int64_t batch);

// All configurations that fit, the fastest by estimate first.
std::vector<Candidate> recurrent_choices(const RecurrentForm& form, const Target& target,
                                         double steps, int64_t batch);

}  // namespace redfuser::codegen
