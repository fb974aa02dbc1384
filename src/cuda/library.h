// Shared libraries of CUDA, opened at run time.
#pragma once

#include <string>
#include <vector>

namespace redfuser::cuda {

// Names of a library, the one to be preferred first.
struct LibraryNames {
  std::string what;  // as users know it: "the CUDA driver"
  std::vector<std::string> files;
  // Beginnings of the names of libraries beside it that it opens itself, by name alone: they are
  // opened first, since the loader does not look there.
  std::vector<std::string> companions = {};
};

// Where libraries are looked for besides the loader's own path, in order. The entries of
// REDFUSER_CUDA_LIBRARIES (separated by colons) are folders or Python interpreters, whose installed
// wheels are searched; then come those of VIRTUAL_ENV and CONDA_PREFIX, and CUDA's own folders.
std::vector<std::string> library_folders();

// An open library. It stays loaded until the process ends, because its threads may outlive us.
class Library {
 public:
  // Throws UserError that says what is missing and where it was looked for.
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
