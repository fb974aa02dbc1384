// Configurations of a ranking, and their times by estimate.
#pragma once

#include <utility>
#include <vector>

#include "codegen/core/kernel_config.h"

namespace redfuser::codegen {

struct RankingConfig {
  enum class Part {
    Warp,      // a warp has the row in registers and takes one rank after the other
    Block,     // a block reads the row once and keeps a list of candidates
    Segments,  // a block does so with a segment; the row's last merges the lists and writes
  };
  Part part = Part::Block;
  int threads = 256;  // of a block
  int chunks = 1;     // groups of row_width() elements of a thread in a tile
  int most = 1;       // Segments: of a row, at most

  Parameters parameters() const {
    return {{"threads", threads}, {"chunks", chunks}, {"most", most}};
  }
};

// What of a form decides how fast a configuration is, and whether it fits.
struct RankingFacts {
  int width = 4;      // consecutive elements of a thread
  int words = 1;      // that they are read from
  int64_t k = 1;      // the most of any ranked accumulator
  int lists = 1;      // ranked accumulators
  int key_bytes = 4;  // the most of any
  bool maps_back = false;
};

// Entries of a list in shared memory for rows of `length` elements (-1: of any length), of all
// lists in bytes; 0 where no list of the configuration works.
int64_t ranking_capacity(const RankingFacts& facts, const RankingConfig& config, int64_t length);
int64_t ranking_shared_bytes(const RankingFacts& facts, const RankingConfig& config,
                             int64_t length);

// All that fit, with their times in microseconds by estimate, for `rows` rows of `length` elements.
std::vector<std::pair<RankingConfig, double>> ranking_candidates(const Target& target,
                                                                 const RankingFacts& facts,
                                                                 int64_t rows, int64_t length);

}  // namespace redfuser::codegen
