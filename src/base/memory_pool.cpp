#include "base/memory_pool.h"

#include <new>
#include <utility>

namespace redfuser {
namespace {

thread_local std::shared_ptr<MemoryPool> pool_of_thread;

void* fresh(size_t bytes) {
  return ::operator new (bytes, std::align_val_t{kTensorAlignment}, std::nothrow);
}

void release(void* data) { ::operator delete (data, std::align_val_t{kTensorAlignment}); }

}  // namespace

MemoryPool::~MemoryPool() { close(); }

void MemoryPool::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  for (const auto& [bytes, block] : free_) release(block.data);
  free_.clear();
}

MemoryPool::Block MemoryPool::take(size_t bytes) {
  const std::lock_guard lock(mutex_);
  // A larger block would hold memory that nothing uses.
  const auto found = free_.lower_bound(bytes);
  if (found != free_.end() && found->first <= bytes + bytes / 4) {
    Block block = found->second;
    free_.erase(found);
    block.run = run_;
    return block;
  }
  void* data = fresh(bytes);
  if (data == nullptr && !free_.empty()) {
    for (const auto& [size, block] : free_) release(block.data);
    free_.clear();
    data = fresh(bytes);
  }
  return {data, bytes, run_};
}

void MemoryPool::give(Block block) {
  const std::lock_guard lock(mutex_);
  if (closed_) return release(block.data);
  block.run = run_;
  free_.emplace(block.bytes, block);
}

void MemoryPool::begin_run() {
  const std::lock_guard lock(mutex_);
  for (auto at = free_.begin(); at != free_.end();) {
    const bool used = at->second.run == run_;
    if (!used) release(at->second.data);
    at = used ? std::next(at) : free_.erase(at);
  }
  ++run_;
}

std::shared_ptr<MemoryPool> current_pool() { return pool_of_thread; }

PoolScope::PoolScope(std::shared_ptr<MemoryPool> pool)
    : outer_(std::exchange(pool_of_thread, std::move(pool))) {}

PoolScope::~PoolScope() { pool_of_thread = std::move(outer_); }

}  // namespace redfuser
