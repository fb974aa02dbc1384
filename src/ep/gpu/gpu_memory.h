// Memory of the GPU for ONNX Runtime's tensors.
#pragma once

#include <map>
#include <mutex>

#include "ep/gpu/gpu.h"

namespace redfuser::ep {

// Blocks of GPU memory, which are kept when they are freed, since the driver waits for the GPU
// where it takes memory back. `gpu` must outlive it. Thread-safe.
class GpuMemory {
 public:
  explicit GpuMemory(Gpu& gpu) : gpu_(gpu) {}

  // A block that work on `stream` may use; null: work on any stream. UserError if the GPU has not
  // so much memory; null for 0 bytes.
  void* allocate(size_t bytes, cuda::StreamHandle stream);
  // The block is for later work of its stream; without one it waits for the GPU.
  void free(void* address);
  // All work of the stream is done: its free blocks are for any.
  void is_idle(cuda::StreamHandle stream);
  // The stream is idle and will have no more work.
  void is_gone(cuda::StreamHandle stream);

 private:
  struct Block {
    cuda::Buffer buffer;
    cuda::StreamHandle stream = nullptr;
  };
  // Of a stream by their size; null has those that no work uses.
  using FreeBlocks = std::map<cuda::StreamHandle, std::multimap<int64_t, cuda::Buffer>>;

  cuda::Buffer take(int64_t bytes, cuda::StreamHandle stream);
  cuda::Buffer create(int64_t bytes);

  Gpu& gpu_;
  std::mutex mutex_;
  std::map<cuda::DevicePointer, Block> used_;
  FreeBlocks free_;
};

// The allocator that ONNX Runtime calls. `info` and `memory` must outlive it.
class GpuAllocator final : public OrtAllocator {
 public:
  GpuAllocator(const Api& api, GpuMemory& memory, const OrtMemoryInfo& info);

 private:
  static GpuAllocator& self(OrtAllocator* allocator) {
    return *static_cast<GpuAllocator*>(allocator);
  }
  void* allocate(size_t bytes, cuda::StreamHandle stream) noexcept;

  const Api api_;
  GpuMemory& memory_;
  const OrtMemoryInfo& info_;
};

}  // namespace redfuser::ep
