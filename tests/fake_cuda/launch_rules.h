// Launches and arguments that a CUDA driver refuses: the limits of NVIDIA's GPUs for launches, for
// the shared memory of functions, and for tensor maps.
#pragma once

#include <string>

#include "cuda/driver_api.h"

namespace redfuser::device_tests {

// Bytes that every function's launches may have, and the most that a GPU's blocks can.
inline constexpr int kDefaultShared = 48 * 1024;
int most_shared(int architecture);

// A kernel's machine code, and the attributes that were set for it.
struct FunctionState {
  int static_shared = 0;  // bytes
  int registers = 0;      // of a thread; 0: any block's fit
  int most_threads = 1024;
  int most_dynamic = -1;  // bytes of dynamic shared memory; -1: the rest of the default limit
  bool large_clusters = false;
};

// Why a launch is refused; empty if it is not.
std::string launch_problem(const cuda::LaunchConfig& config, const FunctionState& function,
                           int architecture);
// The same of so many bytes as the most of a function's dynamic shared memory.
std::string shared_problem(int bytes, const FunctionState& function, int architecture);

// The arguments of cuTensorMapEncodeTiled, or with `lower` and `upper` of cuTensorMapEncodeIm2col,
// whose box are the channels and the pixels of a copy.
struct MapArguments {
  const void* map;
  int dtype;
  unsigned rank;
  const void* address;
  const uint64_t *dims, *strides;
  const unsigned *box, *steps;
  int interleave, swizzle;
  const int *lower = nullptr, *upper = nullptr;
};
// Why they are refused; empty if they are not.
std::string map_problem(const MapArguments& given);

}  // namespace redfuser::device_tests
