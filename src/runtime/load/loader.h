// Compiles the kernels of device steps through the cache and loads them onto the GPU.
#pragma once

#include <exception>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cuda/kernel_cache.h"
#include "redfuser/redfuser.h"
#include "runtime/load/loaded_step.h"

namespace redfuser::runtime {

cuda::CacheOptions cache_options(const SessionOptions& options);

// A loaded step, or the error of compiling or loading one of its kernels, with that kernel's family
// and the form.
struct LoadedGpuStep {
  std::shared_ptr<const LoadedStep> step;
  std::exception_ptr error;
  std::string family;
  codegen::GpuStep form;
};

class KernelLoader {
 public:
  KernelLoader(cuda::DevicePtr device, const SessionOptions& options);

  // In the order of `forms`. Kernels are compiled in parallel, equal ones once.
  std::vector<LoadedGpuStep> load(std::vector<codegen::GpuStep> forms);

  // Releases kernels without a step.
  void release_unused();

  // Remarks since the last call: compiled and cached kernels, and the cache's warnings.
  std::vector<std::string> take_notes();

 private:
  void compile(const std::vector<codegen::GpuStep>& forms);
  void load_step(codegen::GpuStep form, LoadedGpuStep& result);
  cuda::FunctionHandle load_kernel(const codegen::KernelLaunch& launch, LoadedStep& step);

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
