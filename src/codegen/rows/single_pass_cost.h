// Configurations of a fold of rows, with their times by estimate.
#pragma once

#include <vector>

#include "codegen/core/kernel_config.h"
#include "codegen/rows/single_pass.h"

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
  // Bytes of the shortest runs of adjacent elements that a row consists of; 0: the row is one.
  int64_t run_bytes = 0;
};

// How many elements of a row a configuration has in one tile.
int64_t tile_elements(const SinglePassConfig& config);

// A row in segments: a kernel for their states, and one that merges them.
struct SegmentConfig {
  int threads = 256, chunks = 1;
  int most = 256;  // segments of a row
};

// For `rows` rows of `length` elements.
std::vector<Candidate> single_pass_candidates(const Target& target, const SinglePassFacts& facts,
                                              int64_t rows, int64_t length);

}  // namespace redfuser::codegen
