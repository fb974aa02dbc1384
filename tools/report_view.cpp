#include "report_view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "step_view.h"

namespace redfuser::tools {
namespace {

std::vector<std::pair<std::string, int>> by_frequency(const Counts& counts) {
  std::vector<std::pair<std::string, int>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return sorted;
}

std::string joined(const Json& names) {
  const auto list = names.get<std::vector<std::string>>();
  constexpr size_t kShown = 12;
  if (list.size() <= kShown) return fmt::format("{}", fmt::join(list, ", "));
  return fmt::format("{}, ... and {} more", fmt::join(list.begin(), list.begin() + kShown, ", "),
                     list.size() - kShown);
}

std::string stage_line(const Json& stage) {
  std::string line = fmt::format("    {:<7} {:<10} F = {}\n", stage["reduce"].get<std::string>(),
                                 stage["form"].get<std::string>(), stage["F"].get<std::string>());
  for (const char* key : {"G", "H", "rho"}) {
    const std::string text = stage[key].get<std::string>();
    const bool repeated = key == std::string("G") && text == stage["F"].get<std::string>();
    if (!text.empty() && !repeated) line += fmt::format("{:>23}{} = {}\n", "", key, text);
  }
  return line;
}

}  // namespace

ReportView::ReportView(const std::string& json_text)
    : text(json_text), json(Json::parse(json_text)) {
  for (const Json& region : json["fused"]) ++fused_by_class[region["class"].get<std::string>()];
  ops_before = json["ops_before"].get<Counts>();
  ops_after = json["ops_after"].get<Counts>();
}

int total(const Counts& counts) {
  int sum = 0;
  for (const auto& [name, count] : counts) sum += count;
  return sum;
}

std::string most_frequent(const Counts& counts, size_t limit) {
  const auto sorted = by_frequency(counts);
  std::vector<std::string> parts;
  for (size_t i = 0; i < std::min(limit, sorted.size()); ++i) {
    parts.push_back(fmt::format("{} {}", sorted[i].first, sorted[i].second));
  }
  if (sorted.size() > limit) parts.push_back(fmt::format("{} more kinds", sorted.size() - limit));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string fused_summary(const ReportView& report) {
  std::vector<std::string> parts;
  for (const auto& [name, count] : report.fused_by_class) {
    parts.push_back(fmt::format("{} {}", name, count));
  }
  return parts.empty() ? "none" : fmt::format("{}", fmt::join(parts, ", "));
}

std::string count_table(const Counts& before, const Counts& after) {
  Counts all = before;
  all.insert(after.begin(), after.end());
  size_t width = 8;
  for (const auto& [name, count] : all) width = std::max(width, name.size());
  std::string text = fmt::format("{:<{}}  {:>8}  {:>8}\n", "operator", width, "before", "after");
  const auto cell = [](const Counts& counts, const std::string& name) {
    const auto found = counts.find(name);
    return found == counts.end() ? std::string("-") : fmt::format("{}", found->second);
  };
  for (const auto& [name, count] : all) {
    text +=
        fmt::format("{:<{}}  {:>8}  {:>8}\n", name, width, cell(before, name), cell(after, name));
  }
  text += fmt::format("{:<{}}  {:>8}  {:>8}\n", "total", width, total(before), total(after));
  return text;
}

std::vector<std::pair<std::string, std::string>> graph_facts(const ReportView& report) {
  return {{"nodes", fmt::format("{}", total(report.ops_before))},
          {"steps", fmt::format("{}", total(report.ops_after))},
          {"fused", fused_summary(report)}};
}

std::string explanation(const ReportView& report) {
  const StepView steps(report.json);
  std::string text = "fused\n";
  if (report.json["fused"].empty()) text += "  none\n";
  for (const Json& region : report.json["fused"]) {
    const Json& verified = region["verified"];
    const Json& error = verified["max_error"];
    text += fmt::format("  {} {}: {}\n", region["id"].get<int>(),
                        region["class"].get<std::string>(), joined(region["nodes"]));
    for (const Json& stage : region["stages"]) text += stage_line(stage);
    const int cases = verified["cases"].get<int>();
    if (cases > 0) {
      text += fmt::format("    verified on {} adversarial cases, largest error {}\n", cases,
                          error.is_number() ? fmt::format("{:.2g}", error.get<double>())
                                            : error.get<std::string>());
    }
    const auto visible = verified["visible"].get<std::string>();
    const int64_t hidden = verified["hidden"].get<int64_t>();
    if (hidden > 0) {
      text += fmt::format("    the same without {} elements that its mask hides; visible: {}\n",
                          hidden, visible);
    }
    text += steps.of_region(region["id"].get<int>());
  }
  text += "unfused\n";
  if (report.json["unfused"].empty()) text += "  none\n";
  for (const Json& region : report.json["unfused"]) {
    text +=
        fmt::format("  {}\n    {}\n", joined(region["nodes"]), region["reason"].get<std::string>());
    const std::string blame = region["blame"].get<std::string>();
    if (!blame.empty()) text += fmt::format("    at node \"{}\"\n", blame);
  }
  return text + steps.others();
}

}  // namespace redfuser::tools
