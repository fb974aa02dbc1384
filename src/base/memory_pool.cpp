#include "base/memory_pool.h"

#include <algorithm>
#include <iterator>
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

size_t OffsetSpace::take(size_t bytes) {
  const auto gap = std::find_if(gaps_.begin(), gaps_.end(),
                                [&](const auto& each) { return each.second >= bytes; });
  if (gap == gaps_.end()) {
    const size_t at = end_;
    end_ += bytes;
    peak_ = std::max(peak_, end_);
    return at;
  }
  const auto [at, room] = *gap;
  gaps_.erase(gap);
  if (room > bytes) gaps_.emplace(at + bytes, room - bytes);
  return at;
}

void OffsetSpace::give(size_t at, size_t bytes) {
  auto after = gaps_.lower_bound(at);
  if (after != gaps_.end() && after->first == at + bytes) {
    bytes += after->second;
    after = gaps_.erase(after);
  }
  if (after != gaps_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == at) {
      at = before->first;
      bytes += before->second;
      gaps_.erase(before);
    }
  }
  if (at + bytes == end_) {
    end_ = at;
  } else {
    gaps_.emplace(at, bytes);
  }
}

MemoryPool::~MemoryPool() { close(); }

void MemoryPool::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  for (const auto& [bytes, block] : free_) release(block.data);
  free_.clear();
  slab_.reset();
}

MemoryPool::Block MemoryPool::take(size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (layout_ == Layout::Blocks) return take_block(bytes);
  const size_t piece = (bytes + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
  const size_t at = space_.take(piece);
  if (slab_ != nullptr && at + piece <= slab_bytes_) {
    return {static_cast<char*>(slab_.get()) + at, bytes, run_, at, piece, slab_};
  }
  Block block = take_block(bytes);
  block.at = at;
  block.piece = piece;
  return block;
}

MemoryPool::Block MemoryPool::take_block(size_t bytes) {
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
  if (block.piece > 0) space_.give(block.at, std::exchange(block.piece, 0));
  if (block.slab != nullptr) return;
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
  if (layout_ == Layout::Slab) fit_slab();
  ++run_;
}

// Of two slabs at once at most: where pieces of the one before are held, this one stays.
void MemoryPool::fit_slab() {
  const size_t needed = space_.peak();
  space_.restart();
  if ((needed <= slab_bytes_ && needed >= slab_bytes_ / 2) || !retired_.expired()) return;
  retired_ = slab_;
  slab_.reset();
  for (const auto& [bytes, block] : free_) release(block.data);
  free_.clear();
  void* data = needed > 0 ? fresh(needed) : nullptr;
  slab_bytes_ = data != nullptr ? needed : 0;
  if (data != nullptr) slab_ = std::shared_ptr<void>(data, release);
}

std::shared_ptr<MemoryPool> current_pool() { return pool_of_thread; }

PoolScope::PoolScope(std::shared_ptr<MemoryPool> pool)
    : outer_(std::exchange(pool_of_thread, std::move(pool))) {}

PoolScope::~PoolScope() { pool_of_thread = std::move(outer_); }

}  // namespace redfuser
