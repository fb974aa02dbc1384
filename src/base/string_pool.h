// Interned strings. Every distinct string is stored once for the life of the process, so that
// elements of String tensors are numbers and can be copied, compared and gathered as numbers.
#pragma once

#include <cstdint>
#include <string>

namespace redfuser {

// Equal strings have equal numbers; 0 is the empty string. UserError when all strings together
// exceed 1 GiB or a new one exceeds the thread's MemoryLimit. Thread-safe.
uint64_t number_of_text(const std::string& text);
// InternalError for an unknown number.
const std::string& text_of_number(uint64_t number);

}  // namespace redfuser
