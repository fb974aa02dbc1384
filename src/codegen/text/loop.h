// Loops and functions of generated text.
#pragma once

#include <string>

namespace redfuser::codegen {

// An unrolled loop of the int `variable` from 0 to `end`; a body of one statement stands in the
// same line.
std::string loop_over(const std::string& variable, const std::string& end, const std::string& body);

// A function's body in braces, and a newline; one statement stands in the same line.
std::string braced(const std::string& body);

}  // namespace redfuser::codegen
