#include "step_view.h"

#include <fmt/format.h>

#include <algorithm>

namespace redfuser::tools {
namespace {

// ", 12.5 us by estimate, 11.9 us measured" as far as they are known.
std::string times(const Json& of) {
  std::string text;
  const auto add = [&](const char* key, const char* how) {
    if (of[key].is_number()) text += fmt::format(", {:.1f} us {}", of[key].get<double>(), how);
  };
  add("estimated_us", "by estimate");
  add("measured_us", "measured");
  return text;
}

// " (row lanes=32)", less where it repeats the family's name alone.
std::string configuration(const Json& of) {
  const auto text = of["configuration"].get<std::string>();
  return text.empty() || text == of["family"].get<std::string>() ? "" : fmt::format(" ({})", text);
}

// Why a region's operators are steps of their own.
std::string why_divided(const Json& step) {
  const Json& candidates = step["candidates"];
  const bool alone = std::all_of(candidates.begin(), candidates.end(), [](const Json& each) {
    return each["divides"].get<bool>() || !each["refusal"].get<std::string>().empty();
  });
  if (alone) return ", since no family takes the region";
  return candidates.front()["measured_us"].is_number() ? ": faster as measured"
                                                       : ": faster by estimate";
}

std::string refused(const Json& candidate) {
  const auto refusal = candidate["refusal"].get<std::string>();
  const auto family = candidate["family"].get<std::string>();
  if (!refusal.empty()) return fmt::format("not {}: {}", family, refusal);
  return fmt::format("not {}{}{}", family, configuration(candidate), times(candidate));
}

}  // namespace

StepView::StepView(const Json& report) : report_(report) {
  if (report.contains("steps")) steps_ = report["steps"];
  estimated_ = std::any_of(steps_.begin(), steps_.end(),
                           [](const Json& step) { return step["estimated_us"].is_number(); });
  std::map<std::string, size_t> first;  // by all but what is of one step alone
  for (Json step : steps_) {
    for (const char* own : {"step", "name", "region", "share", "bytes"}) step.erase(own);
    first_like_.push_back(first.emplace(step.dump(), first_like_.size()).first->second);
  }
}

std::string StepView::facts(size_t number, const std::string& indent) const {
  const Json& step = steps_[number];
  const auto family = step["family"].get<std::string>();
  const auto refusal = step["refusal"].get<std::string>();
  if (!refusal.empty()) return fmt::format("by none: {}\n", refusal);
  if (family.empty()) return "by no kernel\n";
  const size_t like = first_like_[number];
  if (like != number) return fmt::format("as step {}\n", steps_[like]["step"].get<int>());
  std::string text = "by " + family;
  if (step["divided"].get<bool>()) text += why_divided(step);
  text += configuration(step) + times(step) + "\n";
  for (size_t i = 1; i < step["candidates"].size(); ++i) {
    text += fmt::format("{}{}\n", indent, refused(step["candidates"][i]));
  }
  return text;
}

std::string StepView::of_region(int region) const {
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (steps_[i]["region"] != region) continue;
    return fmt::format("    step {} {}", steps_[i]["step"].get<int>(), facts(i, "      "));
  }
  return "";
}

std::string StepView::others() const {
  if (steps_.empty()) return "";
  const auto device = report_["device"].get<std::string>();
  const bool open = !estimated_ && device != "cpu";
  std::string text =
      fmt::format("other steps on {}{}\n", device,
                  open ? ", whose times depend on sizes that the file leaves open" : "");
  bool any = false;
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (!steps_[i]["region"].is_null()) continue;
    any = true;
    text += fmt::format("  {} {}: {}\n    {}", steps_[i]["step"].get<int>(),
                        steps_[i]["kind"].get<std::string>(), steps_[i]["name"].get<std::string>(),
                        facts(i, "      "));
  }
  return any ? text : text + "  none\n";
}

}  // namespace redfuser::tools
