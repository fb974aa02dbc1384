// The fusion report for people: counts, tables and explanations made of its JSON text.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace redfuser::tools {

using Json = nlohmann::ordered_json;
using Counts = std::map<std::string, int>;

struct ReportView {
  explicit ReportView(const std::string& json_text);

  std::string text;  // of the JSON
  Json json;
  std::map<std::string, int64_t> fused_by_class;
  Counts ops_before, ops_after;
};

int total(const Counts& counts);
// "MatMul 16, Add 12, ...", most frequent first; `limit` entries at most, then "and N more".
std::string most_frequent(const Counts& counts, size_t limit);
// "attention 2, row 5", or "none".
std::string fused_summary(const ReportView& report);
// One line per operator that either side has: name, before, after.
std::string count_table(const Counts& before, const Counts& after);
// The same as lines of a page's head.
std::vector<std::pair<std::string, std::string>> graph_facts(const ReportView& report);
// Every fused region with its stages and what computes it, every one that was not fused with the
// reason, and the other steps.
std::string explanation(const ReportView& report);

}  // namespace redfuser::tools
