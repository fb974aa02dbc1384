// Memory of tensors that later tensors take again: fresh pages cost more than many operators.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace redfuser {

inline constexpr size_t kTensorAlignment = 64;

// Offsets of pieces in one block of memory, for pieces that come and go.
class OffsetSpace {
 public:
  // The lowest offset with room for the piece: memory that was given back last is mostly low, and
  // still in a cache.
  size_t take(size_t bytes);
  void give(size_t at, size_t bytes);

  // The largest end of a piece since the last call of restart().
  size_t peak() const { return peak_; }
  void restart() { peak_ = end_; }

 private:
  std::map<size_t, size_t> gaps_;  // bytes by offset, below end_; no two of them touch
  size_t end_ = 0, peak_ = 0;
};

// Thread-safe. Blocks outlive neither the pool nor the next two runs without a use.
class MemoryPool {
 public:
  // What a run takes and gives back: blocks, or pieces of one slab as large as the run before
  // needed, so that memory is used again while it is in a cache. A piece that is held keeps the
  // slab.
  enum class Layout { Blocks, Slab };

  // Smaller memory is left to the allocator, which keeps it anyway.
  static constexpr size_t kLeastBytes = size_t{1} << 16;
  struct Block {
    void* data = nullptr;
    size_t bytes = 0;
    uint64_t run = 0;  // of its last use: a run that took it, or the last before it was given back
    size_t at = 0, piece = 0;              // of the slab's space; no bytes where the pool has none
    std::shared_ptr<void> slab = nullptr;  // that `data` lies in
  };

  explicit MemoryPool(Layout layout = Layout::Blocks) : layout_(layout) {}
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;
  ~MemoryPool();

  // At least `bytes` bytes, aligned to kTensorAlignment. Without data where memory is exhausted.
  Block take(size_t bytes);
  void give(Block block);
  // Begins a run: frees what the run before did not use, and makes the slab anew where that needed
  // another size.
  void begin_run();
  // Frees what it holds and, from then on, what is given: tensors may outlive the last run.
  void close();

 private:
  Block take_block(size_t bytes);
  void fit_slab();

  const Layout layout_;
  std::mutex mutex_;
  OffsetSpace space_;  // that pieces would have in a slab of any size
  std::shared_ptr<void> slab_;
  size_t slab_bytes_ = 0;
  std::weak_ptr<void> retired_;        // the slab before, of which pieces may be held
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
