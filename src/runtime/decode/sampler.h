// The next tokens of a batch, taken on the session's device.
#pragma once

#include <memory>
#include <random>
#include <set>
#include <vector>

#include "redfuser/device.h"
#include "redfuser/generate.h"
#include "runtime/decode/sampling_graph.h"

namespace redfuser::runtime {

// A sequence whose next token is taken.
struct SequenceState {
  std::set<int64_t> tokens;  // so far, without padding
  bool ended = false;        // its next token does not matter
};

class Sampler {
 public:
  // For the logits of `session`, which must outlive it.
  explicit Sampler(Session& session) : session_(session) {}

  // Begins the draws of `rows` sequences. UserError for options out of range.
  void begin(const GenerateOptions& options, size_t rows);
  // Takes one token per row; of logits [batch, vocabulary] or, the last position,
  // [batch, n, vocabulary] on the session's device. On a GPU it does not wait for it.
  void enqueue(const DeviceTensor& logits, const std::vector<SequenceState>& rows);
  // Those tokens. UserError, with the row, for logits that were NaN.
  std::vector<int64_t> tokens(const std::vector<SequenceState>& rows);

 private:
  SamplingForm form_of(const DeviceTensor& logits) const;
  Session& program_of(const SamplingForm& form);
  NamedTensors inputs_of(const SamplingForm& form, int64_t vocabulary,
                         const std::vector<SequenceState>& rows);

  Session& session_;
  GenerateOptions options_;
  double temperature_ = 0;
  std::vector<std::mt19937_64> random_;  // by row
  NamedDeviceTensors results_;           // of the last enqueue()
  // Of the last few forms, the latest first.
  std::vector<std::pair<SamplingForm, std::unique_ptr<Session>>> programs_;
};

}  // namespace redfuser::runtime
