// The operators that RedFuser runs.
#pragma once

#include <string>

namespace redfuser {

// A Markdown table: domain, source of the definition, names of the operators. Deterministic.
std::string operator_table();

}  // namespace redfuser
