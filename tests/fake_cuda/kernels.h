// How the driver of fake_cuda.h has kernels run.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cuda/driver_api.h"
#include "fake_cuda/launch_rules.h"

namespace redfuser::device_tests {

class KernelCode {
 public:
  virtual ~KernelCode() = default;
  // The launch, to be done now or at every replay; false where it fails. Arguments are copied.
  virtual std::function<bool()> prepared(const std::string& kernel,
                                         const cuda::LaunchConfig& config, void** arguments) = 0;
};

bool runs_kernels();
// Null where kernels are not run, whose machine code is their text.
std::shared_ptr<KernelCode> load_code(const void* image);
int first_architecture();
// Writes a map that the kernels read.
void write_map(const MapArguments& given);

}  // namespace redfuser::device_tests
