// Streams of the GPU, as ONNX Runtime has them.
#pragma once

#include "ep/gpu/gpu_memory.h"

namespace redfuser::ep {

// A stream of its own, or the caller's. When its work is done, `memory` has its free blocks. `gpu`
// and `memory` must outlive it.
class GpuStream final : public OrtSyncStreamImpl {
 public:
  // `borrowed`: a stream of the caller's, who destroys it; null: a new one.
  GpuStream(Gpu& gpu, GpuMemory& memory, cuda::StreamHandle borrowed);
  ~GpuStream();

 private:
  static GpuStream& self(OrtSyncStreamImpl* stream) { return *static_cast<GpuStream*>(stream); }
  void finish();

  Gpu& gpu_;
  GpuMemory& memory_;
  const cuda::Stream stream_;
};

}  // namespace redfuser::ep
