// Machine code of an emulated kernel: a shared library that the emulated compiler wrote.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "emulated_cuda/block.h"

namespace redfuser::emulated_cuda {

class Module {
 public:
  // Throws std::runtime_error if it cannot be opened.
  explicit Module(const void* image);
  ~Module();

  struct Kernel {
    KernelEntry entry;
    std::vector<size_t> sizes;  // of the arguments, bytes
  };
  // Throws std::runtime_error if there is none of the name.
  const Kernel& kernel(const std::string& name);

 private:
  void* handle_ = nullptr;
  std::map<std::string, Kernel> kernels_;
};

}  // namespace redfuser::emulated_cuda
