// Configurations of single-pass row kernels and their estimated times.
#pragma once

#include <vector>

#include "codegen/core/kernel_config.h"
#include "codegen/rows/single_pass.h"

namespace redfuser::codegen {

// The properties of a form that its estimates depend on.
struct SinglePassFacts {
  int width = 4;             // consecutive elements of a thread
  int words = 1;             // words that the fold reads of them
  int shared_words = 4;      // that these take in shared memory
  double element_bytes = 4;  // that the fold reads of an element
  int64_t state_bytes = 0;
  int max_staging_words = 0;       // RowReads::max_staging_words()
  bool shareable = false;          // RowReads::shareable()
  bool loads_for_outputs = false;  // RowReads::loads_for_outputs()
  bool maps_back = false;          // an output for every element
  bool scattered = false;          // offsets of elements divide their position
  bool ragged = false;             // the length is known, and no multiple of the width
  bool narrow = false;             // the width is less than a thread's vectors allow
  // Bytes of the shortest runs of adjacent elements that a row consists of; 0: the row is one.
  int64_t run_bytes = 0;
};

// Elements of a row in one tile of a configuration.
int64_t tile_elements(const SinglePassConfig& config);

// A row in segments: a kernel for their states, and one that merges them.
struct SegmentConfig {
  int threads = 256, chunks = 1;
  int most = 256;  // segments of a row
};

// For `rows` rows of `length` elements. Narrow groups are for rows in registers.
std::vector<Candidate> single_pass_candidates(const Target& target, const SinglePassFacts& facts,
                                              int64_t rows, int64_t length);

}  // namespace redfuser::codegen
