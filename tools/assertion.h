// --assert-fused: how many regions of a class a model must have.
#pragma once

#include <string>

#include "report_view.h"

namespace redfuser::tools {

struct Assertion {
  std::string region_class;
  std::string comparison;  // >=, <=, ==, > or <
  int64_t count = 0;
};

// "attention>=12"; "=" means "==". UserError for anything else.
Assertion parse_assertion(const std::string& text);
bool holds(const Assertion& assertion, const ReportView& report);

// Prints every assertion that does not hold to stderr; true if all hold.
bool check_assertions(const std::vector<std::string>& texts, const ReportView& report);

}  // namespace redfuser::tools
