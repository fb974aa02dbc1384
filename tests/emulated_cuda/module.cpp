#include "emulated_cuda/module.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <stdexcept>

namespace redfuser::emulated_cuda {
namespace {

template <class F>
F symbol(void* handle, const std::string& name) {
  void* found = dlsym(handle, name.c_str());
  if (found == nullptr) throw std::runtime_error("no symbol " + name);
  return reinterpret_cast<F>(found);
}

}  // namespace

Module::Module(const void* image) {
  const auto& header = *static_cast<const Elf64_Ehdr*>(image);
  const size_t bytes = header.e_shoff + static_cast<size_t>(header.e_shnum) * header.e_shentsize;
  char path[] = "/tmp/emulated_kernel_XXXXXX";
  const int file = mkstemp(path);
  const bool written = file >= 0 && write(file, image, bytes) == static_cast<ssize_t>(bytes);
  if (file >= 0) close(file);
  if (written) handle_ = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  unlink(path);
  if (handle_ == nullptr) {
    const char* problem = dlerror();
    throw std::runtime_error(problem != nullptr ? problem : "a kernel's library is not written");
  }
  symbol<void (*)(const emulated::Services*)>(handle_, "emulated_start")(&services());
}

Module::~Module() {
  if (handle_ != nullptr) dlclose(handle_);
}

const Module::Kernel& Module::kernel(const std::string& name) {
  const auto [found, added] = kernels_.try_emplace(name);
  Kernel& kernel = found->second;
  if (!added) return kernel;
  kernel.entry.run = symbol<void (*)(void**)>(handle_, "emulated_run_" + name);
  kernel.entry.current = symbol<emulated::Thread** (*)()>(handle_, "emulated_current");
  kernel.entry.anchor = symbol<char* (*)()>(handle_, "emulated_anchor");
  const auto sizes = symbol<int (*)(size_t*)>(handle_, "emulated_sizes_" + name);
  kernel.sizes.resize(static_cast<size_t>(sizes(nullptr)));
  sizes(kernel.sizes.data());
  return kernel;
}

}  // namespace redfuser::emulated_cuda
