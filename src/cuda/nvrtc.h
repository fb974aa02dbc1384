// NVRTC: CUDA C++ text to machine code, with no GPU and no toolkit at build time.
#pragma once

#include <string>
#include <vector>

#include "cuda/library.h"

namespace redfuser::cuda {

// The names of the library.
LibraryNames nvrtc_library();

// "13.0". Opens the library at the first call; UserError if there is none.
std::string nvrtc_version();

// The target of a compute capability (times ten), with its architecture-specific instructions if it
// has any: "sm_90a".
std::string architecture_name(int architecture);

// The options for an architecture, in order; part of the cache's key.
std::vector<std::string> compile_options(int architecture);

// The machine code (cubin) of `source`. `path` names the source in the log. Throws InternalError
// with NVRTC's log if the text does not compile. Thread-safe.
std::string compile(const std::string& source, const std::vector<std::string>& options,
                    const std::string& path);

}  // namespace redfuser::cuda
