// The next token of rows of logits, as an ONNX graph that the session's device computes.
#pragma once

#include <cstdint>
#include <string>

#include "redfuser/tensor.h"

namespace redfuser::runtime {

struct SamplingForm {
  DType dtype = DType::Float32;  // of the logits
  bool one_position = false;     // the logits are [batch, vocabulary], not [batch, n, vocabulary]
  bool penalises = false;        // tokens that were there
  bool draws = false;            // else the largest logit, the first of equal ones
  int64_t sorted = 0;            // draws among so many of the largest, in their order; 0: unsorted
  bool operator==(const SamplingForm&) const = default;
};

// Text of the graph. Inputs: `logits`, of which the last position counts;
//   seen int64[batch, n], penalty float[batch, 1]   with penalises: tokens, some perhaps repeated
//   temperature, top_p double, uniform double[batch, 1]   with draws: the last in [0, 1)
// Outputs: `token` int64[batch], and `nan` float[batch], 1 where a logit is NaN, else 0.
std::string sampling_graph(const SamplingForm& form);

}  // namespace redfuser::runtime
