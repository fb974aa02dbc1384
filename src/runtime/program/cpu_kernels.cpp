#include "runtime/program/cpu_kernels.h"

#include "cpu/opaque/opaque.h"
#include "cpu/steps/cascade_kernel.h"
#include "cpu/steps/map_kernel.h"
#include "cpu/steps/product_kernel.h"
#include "cpu/steps/reduce_kernel.h"

namespace redfuser::runtime {
namespace {

struct KernelMaker {
  const ir::Graph& graph;
  std::unique_ptr<cpu::Kernel> operator()(const fuse::AliasStep&) const { return nullptr; }
  template <typename Step>
  std::unique_ptr<cpu::Kernel> operator()(const Step& step) const {
    return cpu::make_kernel(graph, step);
  }
};

}  // namespace

const std::vector<std::unique_ptr<cpu::Kernel>>& CpuKernels::of(const fuse::Plan& plan) const {
  std::call_once(made_, [&] {
    std::vector<std::unique_ptr<cpu::Kernel>> kernels;
    for (const fuse::Step& step : plan.steps) {
      kernels.push_back(std::visit(KernelMaker{*plan.graph}, step.kind));
    }
    kernels_ = std::move(kernels);
  });
  return kernels_;
}

}  // namespace redfuser::runtime
