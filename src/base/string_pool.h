// The texts of String tensors, each held once and for the life of the process, so that elements are
// numbers: copied, compared for equality and gathered as such.
#pragma once

#include <cstdint>
#include <string>

namespace redfuser {

// The same text has the same number; numbers go up from 0, the empty text. UserError when all texts
// together exceed 1 GiB, or a new one the MemoryLimit of the thread. Safe to call from several
// threads.
uint64_t number_of_text(const std::string& text);
// InternalError for a number that no text has.
const std::string& text_of_number(uint64_t number);

}  // namespace redfuser
