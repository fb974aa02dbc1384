// Times alternatives of one step in turn, the GPU's cache overwritten before every run.
#pragma once

#include <exception>
#include <vector>

#include "runtime/gpu/bound_program.h"

namespace redfuser::runtime {

class KernelTimer {
 public:
  // At most `room` bytes of GPU memory are taken; with too few the cache is left as it is.
  KernelTimer(cuda::DevicePtr device, int64_t room);

  struct Time {
    double us = 0;             // median
    std::exception_ptr error;  // why it does not launch
  };
  // One per alternative. Those that turn out to be far slower than another are run fewer times.
  std::vector<Time> time(const std::vector<BoundProgram::Calls>& alternatives,
                         const cuda::Stream& stream, cuda::DevicePointer workspace) const;

 private:
  double once(const BoundProgram::Calls& calls, const cuda::Stream& stream,
              cuda::DevicePointer workspace) const;

  cuda::DevicePtr device_;
  cuda::Buffer flush_;
  cuda::Event before_, after_;
};

}  // namespace redfuser::runtime
