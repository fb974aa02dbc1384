// Tokens from a decoder with states (redfuser/state.h), one run per token after the prompt.
//
//   redfuser::Session session(program, {.device = "auto"});
//   redfuser::Generator generator(session, model);
//   redfuser::Generation result = generator.generate(prompt, {.max_tokens = 64});
//
// Keys, values and logits stay on the session's device, which takes the next token.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "redfuser/state.h"

namespace redfuser {

// The next token is the one of the largest logit, the first of equal ones; or, with a temperature
// above 0, is drawn. Logits change in the order of the fields here.
struct GenerateOptions {
  int64_t max_tokens = 128;  // of each sequence; one that meets a stop token ends with that
  // Positions of the prompt in one run; 0: all. A model that declares input_ids[batch, 1] has runs
  // of one position.
  int64_t prompt_chunk = 0;
  // Logits of the tokens so far, padding apart, are divided by it where they are positive and
  // multiplied by it where not (Keskar et al., CTRL, 2019). 1: unchanged.
  double repetition_penalty = 1;
  // Divides the logits. 0: the largest. Without one: 1 if top_k or top_p narrows the choice, else
  // 0.
  std::optional<double> temperature;
  int64_t top_k = 0;  // draws among so many largest logits; 0: all
  // Draws among the fewest largest logits whose probabilities reach this sum (Holtzman et al., The
  // Curious Case of Neural Text Degeneration, 2020). 1: all.
  double top_p = 1;
  uint64_t seed = 0;  // of the draws; row i of a batch has draws of its own
  std::vector<int64_t> stop;
};

struct Generation {
  std::vector<std::vector<int64_t>> tokens;  // by row of the batch, without the prompt
  double first_token_ms = 0;                 // from the call to the first token of every row
  std::vector<double> token_ms;              // from each token of the batch to the next
};

// Called with each token as it is known. False ends the generation.
using TokenCallback = std::function<bool(int64_t row, int64_t token)>;

// Feeds what exporters declare, by name and type; "input_ids" must be there:
//   input_ids       int64 or int32 [batch, n]      the tokens of the run
//   attention_mask  integer or bool [batch, past + n]   1, and 0 for padding
//   position_ids    int64 or int32 [batch, n]      the sum of the mask so far less 1, at least 0
//   cache_position  int64 or int32 [n]             past, past + 1, ...
//   use_cache_branch  bool [1]                     whether there is a past
//   num_logits_to_keep, logits_to_keep  integer scalar, or of one element   1
//   write_indices, nonpad_kv_seqlen, seqlens_k  integer [batch]   past, past + n, past + n - 1
//   past_sequence_length, total_sequence_length  integer scalar, or of one element   likewise
// The output "logits", else the only floating one that is not a state, is [batch, n or 1,
// vocabulary] or [batch, vocabulary].
class Generator {
 public:
  // The session, made of a program of `model`, must outlive the generator and stay where it is.
  // UserError, with the name, for an input that is neither a state nor of the list above, for a
  // model without such logits, and as from States.
  Generator(Session& session, const Model& model, const StateOptions& options = {});
  ~Generator();
  Generator(Generator&&) noexcept;

  // Starts with empty states. The prompt is int64[batch, length]; with shorter sequences in the
  // batch, `mask` of the same sizes is 0 for the padding, on the left, and 1 for the tokens.
  // UserError for other prompts and masks, for padding that the model does not hide (it has no
  // attention_mask, or a node of com.microsoft.GroupQueryAttention), for options out of range, for
  // logits that are NaN, and as from States::run.
  Generation generate(const Tensor& prompt, const Tensor& mask, const GenerateOptions& options = {},
                      const TokenCallback& on_token = nullptr);
  Generation generate(const Tensor& prompt, const GenerateOptions& options = {},
                      const TokenCallback& on_token = nullptr);

  // Which hold the prompt and all tokens but the last afterwards.
  States& states();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace redfuser
