// Runs on the caller's GPU memory and stream.
//
//   NamedDeviceTensors y = session.enqueue({{"x", x}}, {{"y", mine}}, stream);
//
// Session::enqueue reads the inputs in place and writes the given outputs in place; every other
// output stays in the session's own memory until its next run. It returns all outputs. The work
// runs in order on `stream` (a CUstream or cudaStream_t of the GPU's primary context; null: the
// session's own). The call returns when the work is enqueued or, if a tensor is in host memory,
// when that tensor has been copied; where sizes depend on data, when the host has read them. Memory
// that is given for an output of such a size must be of that size, and the output is copied there.
// The caller's memory must stay valid until the stream has passed the work. Runs of one session
// must not overlap: use one stream for them, or wait.
//
// The second run with the same sizes and addresses records a CUDA graph, which later ones replay.
// Nothing is allocated after the first run of the largest sizes. With SessionOptions::tune the
// first run of a shape waits for the stream.
//
// An output may have the memory of an input, for in-place updates of a cache. If the program reads
// that input while or after it writes the output, the output is copied there at the end of the run.
//
// An output that Session::appends() names may have memory with room, which the input's positions
// are in or not: the run writes the new positions alone, or all. Outputs that grow alike have equal
// room, and no other tensor has any.
//
// On the CPU the given outputs are states that a run appends to: each has room, and the memory of
// an input with the same room, whose size differs along one axis. The run writes the new positions
// alone, and its steps are prepared once for all lengths up to a power of two. An output to which
// the program does more than append is returned in other memory with room, and one that is given
// with room but without memory, as a state of fixed size, in memory of its own. Nothing is
// returned, and nothing has run, where no earlier run has shown which sizes grow, and for programs
// with branches.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "redfuser/redfuser.h"

namespace redfuser {

// A row-major tensor on the session's GPU, or on the host; dense but for its room.
struct DeviceTensor {
  DType dtype = DType::Undefined;
  Dims dims;
  void* data = nullptr;  // aligned to its elements; 16 bytes give the fastest kernels
  bool on_host = false;
  std::shared_ptr<void> owner;  // keeps the memory alive; may be null
  // Where the memory has room for more elements along an axis, as that of States: the sizes of the
  // memory, of which the tensor is the beginning along every axis. Empty: `dims`.
  Dims room = {};
};

// Opens the GPU, NVRTC and the product library on threads of its own, which takes some tenths of a
// second: create one before a model is loaded. The next session on a GPU waits for it and reports
// its errors. The destructor waits as well, since a process must not end while those libraries
// initialise.
class GpuWarmup {
 public:
  GpuWarmup();
  ~GpuWarmup();
  GpuWarmup(const GpuWarmup&) = delete;
  GpuWarmup& operator=(const GpuWarmup&) = delete;
};

}  // namespace redfuser
