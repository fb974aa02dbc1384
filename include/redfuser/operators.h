// The operators that RedFuser runs.
#pragma once

#include <string>

namespace redfuser {

// A Markdown table: domain, source of the definition, names of the operators. Deterministic.
std::string operator_table();
// The same with the form that a GPU computes in place of the source. Some forms of an operator run
// on the CPU although others have kernels: an explanation of the model names them.
std::string gpu_operator_table();

}  // namespace redfuser
