// NVRTC: CUDA C++ text to machine code, with no GPU and no toolkit at build time.
#pragma once

#include <string>
#include <vector>

#include "cuda/library.h"

namespace redfuser::cuda {

// What the library is called.
LibraryNames nvrtc_library();

// "13.0". Opens the library at the first call; UserError if there is none.
std::string nvrtc_version();

// "sm_90a": the target that a compute capability (times ten) is compiled for, with the instructions
// of that architecture alone where there are such.
std::string architecture_name(int architecture);

// The options for an architecture, in order; part of the cache's key.
std::vector<std::string> compile_options(int architecture);

// TileContext code (cubin) of `source`. `path` is where the text is kept: it names the source in
// the log. Throws InternalError with NVRTC's log if the text does not compile. Thread-safe.
std::string compile(const std::string& source, const std::vector<std::string>& options,
                    const std::string& path);

}  // namespace redfuser::cuda
