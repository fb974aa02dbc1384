#include "assertion.h"

#include <algorithm>

#include "tool.h"

namespace redfuser::tools {
namespace {

constexpr const char* kClasses[] = {"attention", "row", "product", "chain", "other"};

int64_t fused_count(const Assertion& assertion, const ReportView& report) {
  const auto found = report.fused_by_class.find(assertion.region_class);
  return found == report.fused_by_class.end() ? 0 : found->second;
}

}  // namespace

Assertion parse_assertion(const std::string& text) {
  const size_t begin = text.find_first_of("<>=");
  const size_t end = text.find_first_not_of("<>=", begin);
  Assertion assertion;
  if (begin != std::string::npos && end != std::string::npos) {
    assertion.region_class = text.substr(0, begin);
    assertion.comparison = text.substr(begin, end - begin);
    assertion.count = parse_integer(text.substr(end), "--assert-fused");
  }
  if (assertion.comparison == "=") assertion.comparison = "==";
  static constexpr const char* kComparisons[] = {">=", "<=", "==", ">", "<"};
  if (std::count(std::begin(kComparisons), std::end(kComparisons), assertion.comparison) == 0) {
    fail("--assert-fused wants CLASS>=COUNT (or <=, ==, >, <), not \"{}\"", text);
  }
  if (std::count(std::begin(kClasses), std::end(kClasses), assertion.region_class) == 0) {
    fail("--assert-fused: no class \"{}\"; the classes are {}", assertion.region_class,
         fmt::join(kClasses, ", "));
  }
  return assertion;
}

bool holds(const Assertion& assertion, const ReportView& report) {
  const int64_t count = fused_count(assertion, report);
  if (assertion.comparison == ">=") return count >= assertion.count;
  if (assertion.comparison == "<=") return count <= assertion.count;
  if (assertion.comparison == ">") return count > assertion.count;
  if (assertion.comparison == "<") return count < assertion.count;
  return count == assertion.count;
}

bool check_assertions(const std::vector<std::string>& texts, const ReportView& report) {
  bool all = true;
  for (const std::string& text : texts) {
    const Assertion assertion = parse_assertion(text);
    if (holds(assertion, report)) continue;
    tell(fmt::format("error: --assert-fused {} does not hold: {} fused regions of class {}\n", text,
                     fused_count(assertion, report), assertion.region_class));
    all = false;
  }
  return all;
}

}  // namespace redfuser::tools
