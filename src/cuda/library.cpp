#include "cuda/library.h"

#include <dlfcn.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <sstream>

#include "base/error.h"
#include "redfuser/libraries.h"

namespace redfuser::cuda {
namespace {

namespace fs = std::filesystem;

struct Entries {
  std::mutex mutex;
  std::vector<std::string> list;
};

// Of search_cuda_libraries.
Entries& added_entries() {
  static Entries entries;
  return entries;
}

// Of a program in a Python package, the folder of packages.
fs::path packages_of_program() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path().parent_path();
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

class Folders {
 public:
  void add(const fs::path& folder) {
    std::error_code error;
    if (!fs::is_directory(folder, error)) return;
    const std::string text = folder.lexically_normal().string();
    if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(text);
  }

  // Folders `parent`/*/`child`, newest name first.
  void add_below(const fs::path& parent, const std::string& prefix, const fs::path& child) {
    std::error_code error;
    std::vector<fs::path> found;
    for (fs::directory_iterator it(parent, error), end; !error && it != end; it.increment(error)) {
      if (it->path().filename().string().starts_with(prefix)) found.push_back(it->path());
    }
    std::sort(found.rbegin(), found.rend());
    for (const fs::path& path : found) add(path / child);
  }

  // The wheels nvidia-* put their libraries in nvidia/<component>/lib.
  void add_site_packages(const fs::path& folder) { add_below(folder / "nvidia", "", "lib"); }

  void add_python(const fs::path& prefix) {
    for (const char* library : {"lib", "lib64"}) {
      Folders pythons;
      pythons.add_below(prefix / library, "python3", "");
      for (const std::string& python : pythons.list) {
        for (const char* packages : {"site-packages", "dist-packages"}) {
          add_site_packages(fs::path(python) / packages);
        }
      }
    }
  }

  void add_entry(const fs::path& entry) {
    std::error_code error;
    if (!fs::is_directory(entry, error)) {
      add_python(entry.parent_path().parent_path());
      return;
    }
    add(entry);
    add(entry / "lib64");
    add(entry / "lib");
    add_site_packages(entry);
  }

  std::vector<std::string> list;
};

void open_companions(const fs::path& folder, const std::vector<std::string>& beginnings) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    for (const std::string& beginning : beginnings) {
      if (name.starts_with(beginning)) dlopen(it->path().c_str(), RTLD_NOW | RTLD_LOCAL);
    }
  }
}

}  // namespace

std::vector<std::string> library_folders() {
  Folders folders;
  std::istringstream entries(environment("REDFUSER_CUDA_LIBRARIES"));
  for (std::string entry; std::getline(entries, entry, ':');) {
    if (!entry.empty()) folders.add_entry(entry);
  }
  {
    const std::lock_guard lock(added_entries().mutex);
    for (const std::string& entry : added_entries().list) folders.add_entry(entry);
  }
  for (const char* prefix : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const std::string path = environment(prefix); !path.empty()) {
      folders.add(fs::path(path) / "lib");
      folders.add_python(path);
    }
  }
  folders.add_site_packages(packages_of_program());
  for (const char* home : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const std::string path = environment(home); !path.empty()) folders.add_entry(path);
  }
  folders.add("/usr/local/cuda/lib64");
  folders.add_below("/usr/local", "cuda", "lib64");
  folders.add("/usr/local/nvidia/lib64");
  folders.add("/usr/local/nvidia/lib");
  folders.add("/usr/lib/wsl/lib");
  return folders.list;
}

Library::Library(const LibraryNames& names) : what_(names.what) {
  const std::vector<std::string> folders = library_folders();
  std::string reason;
  auto open = [&](const std::string& path) {
    handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) path_ = path;
    return handle_ != nullptr;
  };
  for (const std::string& file : names.files) {
    for (const std::string& folder : folders) {
      const std::string path = (fs::path(folder) / file).string();
      std::error_code error;
      if (!fs::exists(path, error)) continue;
      open_companions(folder, names.companions);
      if (open(path)) return;
      if (const char* text = dlerror(); text != nullptr && reason.empty()) reason = text;
    }
    if (open(file)) return;
  }
  user_error(
      "cannot open {} ({}): looked in the loader's path{}{}{}; name more folders, or a "
      "Python with NVIDIA's wheels, in REDFUSER_CUDA_LIBRARIES",
      what_, fmt::join(names.files, ", "), folders.empty() ? "" : ", ", fmt::join(folders, ", "),
      reason.empty() ? "" : "; " + reason);
}

void* Library::symbol(const char* name) const {
  void* address = dlsym(handle_, name);
  if (address == nullptr) user_error("{} ({}) is too old: it has no {}", what_, path_, name);
  return address;
}

}  // namespace redfuser::cuda

namespace redfuser {

void search_cuda_libraries(const std::string& entry) {
  cuda::Entries& entries = cuda::added_entries();
  const std::lock_guard lock(entries.mutex);
  entries.list.push_back(entry);
}

}  // namespace redfuser
