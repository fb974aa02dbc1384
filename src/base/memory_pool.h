// Memory of tensors that later tensors take again: fresh pages cost more than many operators.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace redfuser {

inline constexpr size_t kTensorAlignment = 64;

// Thread-safe. Blocks outlive neither the pool nor the next two runs without a use.
class MemoryPool {
 public:
  // Smaller memory is left to the allocator, which keeps it anyway.
  static constexpr size_t kLeastBytes = size_t{1} << 16;
  struct Block {
    void* data = nullptr;
    size_t bytes = 0;
    uint64_t run = 0;  // of its last use: a run that took it, or the last before it was given back
  };

  MemoryPool() = default;
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;
  ~MemoryPool();

  // At least `bytes` bytes, aligned to kTensorAlignment. Without data where memory is exhausted.
  Block take(size_t bytes);
  void give(Block block);
  // Begins a run: frees what the run before did not use.
  void begin_run();
  // Frees what it holds and, from then on, what is given: tensors may outlive the last run.
  void close();

 private:
  std::mutex mutex_;
  std::multimap<size_t, Block> free_;  // by bytes
  uint64_t run_ = 0;
  bool closed_ = false;
};

// The pool of the calling thread; null without one.
std::shared_ptr<MemoryPool> current_pool();

// While it exists, tensors that the calling thread makes take their memory from this pool.
class PoolScope {
 public:
  explicit PoolScope(std::shared_ptr<MemoryPool> pool);
  ~PoolScope();
  PoolScope(const PoolScope&) = delete;
  PoolScope& operator=(const PoolScope&) = delete;

 private:
  std::shared_ptr<MemoryPool> outer_;
};

}  // namespace redfuser
