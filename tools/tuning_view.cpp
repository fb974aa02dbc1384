#include "tuning_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace redfuser::tools {
namespace {

bool equal_findings(const StepTuning& a, const StepTuning& b) {
  const auto parts = [](const StepTuning& t) {
    return std::tie(t.kind, t.default_choice, t.choice, t.default_us, t.us);
  };
  return parts(a) == parts(b);
}

std::string shortened(const std::string& label) {
  constexpr size_t kShown = 48;
  return label.size() <= kShown ? label : label.substr(0, kShown) + "...";
}

std::string line(const StepTuning& t, size_t others) {
  std::string text = shortened(t.label);
  if (others > 0) text += fmt::format(" and {} more", others);
  const char* source = t.remembered ? "remembered" : "measured";
  if (t.choice == t.default_choice) {
    return text + fmt::format(": {:.1f} us by default, the best of {} {}: {}", t.default_us,
                              t.measured.size(), source, t.choice);
  }
  return text + fmt::format(": {:.1f} us by default, {:.1f} us by {} (of {} {}; default {})",
                            t.default_us, t.us, t.choice, t.measured.size(), source,
                            t.default_choice);
}

}  // namespace

std::vector<std::string> tuning_lines(const std::vector<StepTuning>& tunings) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < tunings.size(); ++i) {
    const auto same = [&](const StepTuning& other) { return equal_findings(tunings[i], other); };
    const auto at = tunings.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::any_of(tunings.begin(), at, same)) continue;
    const auto count = std::count_if(at, tunings.end(), same);
    lines.push_back(line(tunings[i], static_cast<size_t>(count - 1)));
  }
  return lines;
}

Json tuning_json(const std::vector<StepTuning>& tunings) {
  Json steps = Json::array();
  for (const StepTuning& t : tunings) {
    Json measured = Json::array();
    for (const auto& [choice, us] : t.measured) {
      measured.push_back({{"choice", choice}, {"us", us}});
      const auto estimate = t.estimated_us.find(choice);
      if (estimate != t.estimated_us.end()) measured.back()["estimated_us"] = estimate->second;
    }
    steps.push_back({{"name", t.label},
                     {"kind", t.kind},
                     {"default_us", t.default_us},
                     {"us", t.us},
                     {"default", t.default_choice},
                     {"choice", t.choice},
                     {"measured", std::move(measured)},
                     {"remembered", t.remembered}});
  }
  return steps;
}

}  // namespace redfuser::tools
