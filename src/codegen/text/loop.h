// Loops of generated text.
#pragma once

#include <string>

namespace redfuser::codegen {

// An unrolled loop of the int `variable` from 0 to `count`, without a newline at its end.
std::string unrolled(const std::string& variable, int count, const std::string& body);

}  // namespace redfuser::codegen
