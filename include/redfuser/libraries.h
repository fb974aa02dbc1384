// Where CUDA's libraries are looked for.
#pragma once

#include <string>

namespace redfuser {

// Searches a folder, a folder of Python packages (site-packages) with NVIDIA's wheels, or a Python
// interpreter's packages for the driver, NVRTC and cuBLASLt, after the entries of
// REDFUSER_CUDA_LIBRARIES and before any other folder. Later calls add to earlier ones. Libraries
// that are open stay. Threads may call it.
void search_cuda_libraries(const std::string& entry);

}  // namespace redfuser
