// Shared libraries of CUDA, opened at run time.
#pragma once

#include <string>
#include <vector>

namespace redfuser::cuda {

// Names of a library, in order of preference.
struct LibraryNames {
  std::string what;  // for messages: "the CUDA driver"
  std::vector<std::string> files;
  // Prefixes of the names of libraries in its folder that it opens by name: they are opened first,
  // since the loader does not search that folder.
  std::vector<std::string> companions = {};
};

// Folders that are searched for libraries after the loader's own path, in order. The entries of
// REDFUSER_CUDA_LIBRARIES (separated by colons) are folders or Python interpreters, whose installed
// wheels are searched; then come those of search_cuda_libraries (redfuser/libraries.h), those of
// VIRTUAL_ENV and CONDA_PREFIX, wheels beside the package that the program is in, and CUDA's own
// folders.
std::vector<std::string> library_folders();

// An open library. It stays loaded until the process ends, since its threads may run until then.
class Library {
 public:
  // Throws UserError with the library and the folders that were searched.
  explicit Library(const LibraryNames& names);

  // Throws UserError naming the library if it lacks the symbol (it is too old).
  void* symbol(const char* name) const;
  template <typename Function>
  void bind(Function*& function, const char* name) const {
    function = reinterpret_cast<Function*>(symbol(name));
  }
  const std::string& path() const { return path_; }

 private:
  std::string what_, path_;
  void* handle_ = nullptr;
};

}  // namespace redfuser::cuda
