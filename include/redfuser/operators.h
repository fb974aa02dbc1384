// The operators that RedFuser runs.
#pragma once

#include <string>

namespace redfuser {

// A Markdown table: domain, what defines the operators, their names. Deterministic.
std::string operator_table();

}  // namespace redfuser
