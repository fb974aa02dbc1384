// A step's device form on the GPU.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "codegen/core/gpu_step.h"
#include "cuda/driver.h"

namespace redfuser::runtime {

struct LoadedStep {
  codegen::GpuStep form;
  std::vector<cuda::FunctionHandle> functions;               // of every call; null for products
  std::vector<std::shared_ptr<const cuda::Module>> modules;  // that have the functions
};
// One per step of the plan.
using LoadedSteps = std::vector<std::shared_ptr<const LoadedStep>>;

// Whether one of its calls is the product library's.
inline bool calls_products(const codegen::GpuStep& step) {
  return std::any_of(step.calls.begin(), step.calls.end(), [](const codegen::GpuCall& call) {
    return std::holds_alternative<codegen::ProductCall>(call);
  });
}

}  // namespace redfuser::runtime
