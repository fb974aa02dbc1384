#include "runtime/program/cpu_kernels.h"

#include "cpu/select/make_kernel.h"
#include "onnx/import/control_call.h"

namespace redfuser::runtime {
namespace {

bool is_call(const ir::Graph& graph, const fuse::Step& step) {
  const auto* opaque = std::get_if<fuse::OpaqueStep>(&step.kind);
  return opaque != nullptr &&
         onnx::call_number(graph.nodes[static_cast<size_t>(opaque->node)]) >= 0;
}

}  // namespace

const std::vector<std::unique_ptr<cpu::Kernel>>& CpuKernels::of(const fuse::Plan& plan) const {
  std::call_once(made_, [&] {
    std::vector<std::unique_ptr<cpu::Kernel>> kernels;
    for (const fuse::Step& step : plan.steps) {
      const bool call = is_call(*plan.graph, step);
      kernels.push_back(call ? nullptr : cpu::make_kernel(*plan.graph, step));
    }
    kernels_ = std::move(kernels);
  });
  return kernels_;
}

}  // namespace redfuser::runtime
