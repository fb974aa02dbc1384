// The source of a kernel as a host compiler takes it.
#pragma once

#include <string>

namespace redfuser::emulated_cuda {

// Functions and macros with instructions in assembler are left out: instructions.h has them. Every
// kernel gets an entry, emulated_run_NAME and emulated_sizes_NAME (module.h).
std::string host_source(const std::string& cuda, int architecture);

}  // namespace redfuser::emulated_cuda
