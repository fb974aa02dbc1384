#include "runtime/decode/sampler.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace redfuser::runtime {
namespace {

void check_options(const GenerateOptions& options) {
  const double temperature = options.temperature.value_or(0);
  if (options.max_tokens < 1) user_error("generate: max_tokens is {}", options.max_tokens);
  if (options.prompt_chunk < 0) user_error("generate: prompt_chunk is {}", options.prompt_chunk);
  if (options.top_k < 0) user_error("generate: top_k is {}", options.top_k);
  if (!(options.top_p > 0 && options.top_p <= 1)) {
    user_error("generate: top_p is {}, not above 0 and at most 1", options.top_p);
  }
  if (!std::isfinite(temperature) || temperature < 0) {
    user_error("generate: the temperature is {}, not finite or below 0", temperature);
  }
  if (!std::isfinite(options.repetition_penalty) || options.repetition_penalty <= 0) {
    user_error("generate: the repetition penalty is {}, not finite and above 0",
               options.repetition_penalty);
  }
}

// In [0, 1), alike in every standard library.
double uniform(std::mt19937_64& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

}  // namespace

Sampler::Sampler(const GenerateOptions& options, int64_t rows)
    : penalty_(options.repetition_penalty), top_p_(options.top_p), top_k_(options.top_k) {
  check_options(options);
  const bool narrows = options.top_k > 0 || options.top_p < 1;
  temperature_ = options.temperature.value_or(narrows ? 1 : 0);
  for (int64_t row = 0; row < rows; ++row) {
    std::seed_seq seed{static_cast<uint32_t>(options.seed),
                       static_cast<uint32_t>(options.seed >> 32), static_cast<uint32_t>(row)};
    random_.emplace_back(seed);
  }
}

// The largest first, of equal ones the first token.
std::vector<Sampler::Candidate> Sampler::candidates(std::span<const float> logits) const {
  std::vector<Candidate> all;
  for (size_t i = 0; i < logits.size(); ++i) all.push_back({logits[i], static_cast<int64_t>(i)});
  const auto before = [](const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
  };
  const size_t kept = top_k_ > 0 ? std::min(static_cast<size_t>(top_k_), all.size()) : all.size();
  std::partial_sort(all.begin(), all.begin() + static_cast<int64_t>(kept), all.end(), before);
  all.resize(kept);
  return all;
}

int64_t Sampler::draw(int64_t row, std::span<const Candidate> candidates) {
  std::vector<double> weights;
  double total = 0;
  for (const Candidate& candidate : candidates) {
    const double distance = static_cast<double>(candidate.logit) - candidates[0].logit;
    weights.push_back(std::exp(distance / temperature_));
    total += weights.back();
  }
  size_t count = 0;
  double sum = 0;
  while (count < weights.size() && (count == 0 || sum < top_p_ * total)) sum += weights[count++];
  double left = uniform(random_[static_cast<size_t>(row)]) * sum;
  for (size_t i = 0; i < count; ++i) {
    left -= weights[i];
    if (left < 0) return candidates[i].token;
  }
  return candidates[count - 1].token;
}

int64_t Sampler::next(int64_t row, std::span<float> logits, const std::set<int64_t>& before) {
  for (const int64_t token : before) {
    if (penalty_ == 1 || token < 0 || token >= static_cast<int64_t>(logits.size())) continue;
    float& logit = logits[static_cast<size_t>(token)];
    logit = static_cast<float>(logit > 0 ? logit / penalty_ : logit * penalty_);
  }
  if (std::any_of(logits.begin(), logits.end(), [](float x) { return std::isnan(x); })) {
    user_error("generate: the logits of row {} are NaN", row);
  }
  if (temperature_ == 0) return std::max_element(logits.begin(), logits.end()) - logits.begin();
  return draw(row, candidates(logits));
}

}  // namespace redfuser::runtime
