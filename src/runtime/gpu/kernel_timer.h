// Measures alternatives of one step in turn, with the L2 cache overwritten before every run.
#pragma once

#include <exception>
#include <vector>

#include "runtime/gpu/bound/bound_program.h"

namespace redfuser::runtime {

class KernelTimer {
 public:
  // Takes at most `room` bytes of GPU memory; with too few the cache is not overwritten.
  KernelTimer(cuda::DevicePtr device, int64_t room);

  struct Time {
    double us = 0;             // median
    std::exception_ptr error;  // of the launch
  };
  // One per alternative. Alternatives that are far slower than the best run fewer times.
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
