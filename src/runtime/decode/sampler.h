// The next token of a row of logits.
#pragma once

#include <random>
#include <set>
#include <span>

#include "redfuser/generate.h"

namespace redfuser::runtime {

class Sampler {
 public:
  // Of `rows` sequences. UserError for options out of range.
  Sampler(const GenerateOptions& options, int64_t rows);

  // Changes the logits as the options say. `before` are the tokens of the row so far.
  int64_t next(int64_t row, std::span<float> logits, const std::set<int64_t>& before);

 private:
  struct Candidate {
    float logit = 0;
    int64_t token = 0;
  };

  std::vector<Candidate> candidates(std::span<const float> logits) const;
  int64_t draw(int64_t row, std::span<const Candidate> candidates);

  double penalty_, temperature_, top_p_;
  int64_t top_k_;
  std::vector<std::mt19937_64> random_;  // by row
};

}  // namespace redfuser::runtime
