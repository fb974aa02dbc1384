#include "ep/gpu/gpu_memory.h"

#include "base/error.h"

namespace redfuser::ep {

cuda::Buffer GpuMemory::create(int64_t bytes) {
  constexpr const char* kUse = "a tensor of ONNX Runtime";
  try {
    return {gpu_.device(), bytes, kUse};
  } catch (const UserError&) {
    if (free_.empty()) throw;
  }
  gpu_.device()->synchronize();
  free_.clear();
  return {gpu_.device(), bytes, kUse};
}

// Blocks that are larger by at most a quarter serve as well.
cuda::Buffer GpuMemory::take(int64_t bytes, cuda::StreamHandle stream) {
  for (const cuda::StreamHandle owner : {stream, cuda::StreamHandle{nullptr}}) {
    auto& blocks = free_[owner];
    const auto block = blocks.lower_bound(bytes);
    if (block == blocks.end() || block->first > bytes + bytes / 4) continue;
    cuda::Buffer result = std::move(block->second);
    blocks.erase(block);
    return result;
  }
  return create(bytes);
}

void* GpuMemory::allocate(size_t bytes, cuda::StreamHandle stream) {
  if (bytes == 0) return nullptr;
  constexpr int64_t kUnit = 512;
  const std::lock_guard lock(mutex_);
  cuda::Buffer buffer = take((static_cast<int64_t>(bytes) + kUnit - 1) / kUnit * kUnit, stream);
  const cuda::DevicePointer address = buffer.address();
  used_.emplace(address, Block{std::move(buffer), stream});
  return reinterpret_cast<void*>(address);
}

void GpuMemory::free(void* address) {
  if (address == nullptr) return;
  const std::lock_guard lock(mutex_);
  auto block = used_.extract(reinterpret_cast<cuda::DevicePointer>(address));
  RF_CHECK(!block.empty(), "ONNX Runtime frees memory that it was not given");
  if (block.mapped().stream == nullptr) gpu_.device()->synchronize();
  cuda::Buffer& buffer = block.mapped().buffer;
  const int64_t bytes = buffer.bytes();
  free_[block.mapped().stream].insert({bytes, std::move(buffer)});
}

void GpuMemory::is_idle(cuda::StreamHandle stream) {
  const std::lock_guard lock(mutex_);
  if (stream == nullptr) return;
  if (auto blocks = free_.extract(stream)) free_[nullptr].merge(blocks.mapped());
}

void GpuMemory::is_gone(cuda::StreamHandle stream) {
  is_idle(stream);
  const std::lock_guard lock(mutex_);
  for (auto& [address, block] : used_) {
    if (block.stream == stream) block.stream = nullptr;
  }
}

GpuAllocator::GpuAllocator(const Api& api, GpuMemory& memory, const OrtMemoryInfo& info)
    : OrtAllocator{}, api_(api), memory_(memory), info_(info) {
  version = api.version;
  Alloc = [](OrtAllocator* allocator, size_t bytes) noexcept {
    return self(allocator).allocate(bytes, nullptr);
  };
  Reserve = Alloc;
  Free = [](OrtAllocator* allocator, void* address) noexcept {
    try {
      self(allocator).memory_.free(address);
    } catch (const std::exception&) {
      // A GPU that is lost, of which the runs have told.
    }
  };
  Info = [](const OrtAllocator* allocator) noexcept {
    return &static_cast<const GpuAllocator*>(allocator)->info_;
  };
  AllocOnStream = [](OrtAllocator* allocator, size_t bytes, OrtSyncStream* stream) noexcept {
    GpuAllocator& own = self(allocator);
    return own.allocate(bytes, stream ? own.api_.ort->SyncStream_GetHandle(stream) : nullptr);
  };
}

// ONNX Runtime reports null as a lack of memory; it has no other report of an allocator.
void* GpuAllocator::allocate(size_t bytes, cuda::StreamHandle stream) noexcept {
  try {
    return memory_.allocate(bytes, stream);
  } catch (const std::exception&) {
    return nullptr;
  }
}

}  // namespace redfuser::ep
