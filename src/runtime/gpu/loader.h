// Brings device steps onto the GPU: compiles their kernels through the cache and loads them.
#pragma once

#include <exception>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cuda/kernel_cache.h"
#include "runtime/gpu/program.h"

namespace redfuser::runtime {

cuda::CacheOptions cache_options(const SessionOptions& options);

// A step, or why a kernel of it does not compile or load.
struct LoadedGpuStep {
  std::shared_ptr<const LoadedStep> step;
  std::exception_ptr error;
};

class KernelLoader {
 public:
  KernelLoader(cuda::DevicePtr device, const SessionOptions& options);

  // In the order given. Kernels are compiled in parallel, equal ones once.
  std::vector<LoadedGpuStep> load(std::vector<codegen::GpuStep> forms);

  // Forgets kernels of which no step is left.
  void release_unused();

  // Since the last call: what was compiled and what the cache had, and the cache's warnings.
  std::vector<std::string> take_notes();

 private:
  void compile(const std::vector<codegen::GpuStep>& forms);
  std::shared_ptr<const LoadedStep> load_step(codegen::GpuStep form);

  struct Kernel {
    cuda::CompiledText text;
    std::shared_ptr<const cuda::Module> module;
  };
  cuda::DevicePtr device_;
  const SessionOptions options_;
  std::map<std::string, Kernel> kernels_;  // by source
  std::vector<std::string> notes_;
};

}  // namespace redfuser::runtime
