#include "select/choice.h"

#include <algorithm>

#include "base/error.h"
#include "select/by_time.h"

namespace redfuser::select {

int KernelConfig::at(std::string_view parameter) const {
  const auto found = std::find_if(parameters.begin(), parameters.end(),
                                  [&](const auto& entry) { return entry.first == parameter; });
  RF_CHECK(found != parameters.end(), "{} has no parameter {}", to_string(*this), parameter);
  return found->second;
}

std::string to_string(const KernelConfig& choice) {
  std::string text = choice.family;
  for (const auto& [name, value] : choice.parameters) text += fmt::format(" {}={}", name, value);
  return text;
}

std::vector<Candidate> best_choices(std::vector<Candidate> chosen,
                                    std::vector<Candidate> candidates) {
  candidates = by_time(std::move(candidates));
  std::vector<Candidate> best = std::move(chosen);
  if (best.size() > kMaxChoices) best.resize(kMaxChoices);
  for (Candidate& candidate : candidates) {
    if (best.size() == kMaxChoices) break;
    const bool known = std::any_of(best.begin(), best.end(), [&](const Candidate& other) {
      return other.choice == candidate.choice;
    });
    if (!known) best.push_back(std::move(candidate));
  }
  return best;
}

}  // namespace redfuser::select
