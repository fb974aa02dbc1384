#include "runtime/program/cpu_kernels.h"

#include "cpu/select/make_kernel.h"

namespace redfuser::runtime {
const std::vector<std::unique_ptr<cpu::Kernel>>& CpuKernels::of(const fuse::Plan& plan) const {
  std::call_once(made_, [&] {
    std::vector<std::unique_ptr<cpu::Kernel>> kernels;
    for (const fuse::Step& step : plan.steps) {
      kernels.push_back(cpu::make_kernel(*plan.graph, step));
    }
    kernels_ = std::move(kernels);
  });
  return kernels_;
}

}  // namespace redfuser::runtime
