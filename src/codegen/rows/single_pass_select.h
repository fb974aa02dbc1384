// The choices for a fold of rows: threads of a row, where it is kept, clusters and segments.
#pragma once

#include <vector>

#include "codegen/core/kernel_config.h"
#include "codegen/rows/rows.h"

namespace redfuser::codegen {

// What of a form decides how fast a configuration is.
struct SinglePassFacts {
  int width = 4;  // consecutive elements of a thread
  int words = 1;  // that the fold reads of them
  int64_t state_bytes = 0;
  int joint_words = 0;     // that the lanes of a warp may load together and then part
  bool shareable = false;  // they can lie in shared memory
  bool fetches = false;    // outputs read what the fold does not
  bool maps_back = false;  // an output for every element
};
SinglePassFacts single_pass_facts(StepBuilder& builder, const FlatStreaming& form);

// How many elements of a row a configuration has in one tile.
int64_t tile_elements(const SinglePassConfig& config);

// A row in segments: a kernel for their states, and one that merges them.
struct SegmentConfig {
  int threads = 256, chunks = 1;
  int most = 256;  // segments of a row
};

KernelConfig choice_of(const SinglePassConfig& config);
KernelConfig choice_of(const SegmentConfig& config);

// For `rows` rows of `length` elements.
std::vector<Candidate> single_pass_candidates(const Target& target, const SinglePassFacts& facts,
                                              int64_t rows, int64_t length);

// As kernel_configs; of a form that folds().
std::vector<Candidate> single_pass_configs(StepBuilder& builder, const FlatStreaming& form,
                                           const KnownSizes& sizes);

// The kernels of one of them. Lengths that it has no room for are left to the default.
void add_fold(StepBuilder& builder, const FlatStreaming& form, const KernelConfig& choice);

}  // namespace redfuser::codegen
