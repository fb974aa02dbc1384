// Runs on the caller's GPU memory and stream.
//
//   NamedDeviceTensors y = session.enqueue({{"x", x}}, {{"y", mine}}, stream);
//
// Session::enqueue reads inputs where they lie and writes the outputs that are given to where they
// shall lie; every other output stays in the session's own memory until its next run. All outputs
// come back. Everything happens in order on `stream` (a CUstream or cudaStream_t of the GPU's
// primary context; null: the session's own); the call returns when the work is enqueued, or, where
// a tensor is in host memory, when that has been copied. What is given must stay valid until the
// stream has got there, and runs of one session must not overlap: use one stream for them, or wait.
//
// The second run with the same sizes and addresses records a CUDA graph, which later ones replay.
// Nothing is allocated after the first run of the largest sizes. With SessionOptions::tune the
// first run of a shape waits for the stream.
//
// An output may be given the memory of an input: in-place updates of a cache. It is written there
// at the end of the run where the program still reads the input after or while writing it.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "redfuser/redfuser.h"

namespace redfuser {

// A dense, row-major tensor on the session's GPU, or on the host.
struct DeviceTensor {
  DType dtype = DType::Undefined;
  Dims dims;
  void* data = nullptr;  // aligned to its elements; 16 bytes give the fastest kernels
  bool on_host = false;
  std::shared_ptr<void> owner;  // keeps the memory alive; may be null
};

// Opens the GPU, its compiler and its product library on threads of its own, which takes some
// tenths of a second: worth having before a model is loaded. The next session on a GPU waits for it
// and reports what fails. The end waits as well: a process must not end within those libraries.
class GpuWarmup {
 public:
  GpuWarmup();
  ~GpuWarmup();
  GpuWarmup(const GpuWarmup&) = delete;
  GpuWarmup& operator=(const GpuWarmup&) = delete;
};

}  // namespace redfuser
