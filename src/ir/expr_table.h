// A hash table of expressions that only grows. Internal to src/ir.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

namespace redfuser::ir {

// Entries are found by hash and a test of equality. They lie in one array, beside their hashes, so
// that a lookup seldom touches the memory of an expression that is another one.
template <class Entry>
class ExprTable {
 public:
  // The entry with this hash for which `equal` is true; null if there is none.
  template <class Equal>
  const Entry* find(size_t hash, const Equal& equal) const {
    if (slots_.empty()) return nullptr;
    const uint32_t tag = tag_of(hash);
    for (size_t at = tag & mask(); slots_[at].tag != 0; at = (at + 1) & mask()) {
      if (slots_[at].tag == tag && equal(slots_[at].entry)) return &slots_[at].entry;
    }
    return nullptr;
  }

  // Requires that no equal entry exists.
  void insert(size_t hash, Entry entry) {
    if (2 * ++count_ > slots_.size()) grow();
    place({tag_of(hash), entry});
  }

 private:
  struct Slot {
    uint32_t tag = 0;  // of the hash; 0: empty
    Entry entry = {};
  };
  static constexpr size_t kFirst = 64;  // a power of two

  static uint32_t tag_of(size_t hash) {
    return static_cast<uint32_t>(hash * 0x9e3779b97f4a7c15ull >> 32) | 1u << 31;
  }
  size_t mask() const { return slots_.size() - 1; }

  void place(const Slot& slot) {
    size_t at = slot.tag & mask();
    while (slots_[at].tag != 0) at = (at + 1) & mask();
    slots_[at] = slot;
  }

  void grow() {
    const std::vector<Slot> old = std::move(slots_);
    slots_ = std::vector<Slot>(old.empty() ? kFirst : 2 * old.size());
    for (const Slot& slot : old) {
      if (slot.tag != 0) place(slot);
    }
  }

  std::vector<Slot> slots_;  // linear probing; at most half of them are taken
  size_t count_ = 0;
};

// Values at addresses that stay, in few allocations.
template <class T>
class Chunks {
 public:
  // Room for `count` values that lie side by side, moved from `values`.
  T* append(T* values, size_t count) {
    if (chunks_.empty() || chunks_.back().capacity() - chunks_.back().size() < count) {
      const size_t size = chunks_.empty() ? kFirst : std::min(2 * chunks_.back().capacity(), kMost);
      chunks_.emplace_back().reserve(std::max(size, count));
    }
    std::vector<T>& chunk = chunks_.back();
    chunk.insert(chunk.end(), std::move_iterator(values), std::move_iterator(values + count));
    size_ += count;
    return chunk.data() + (chunk.size() - count);
  }
  size_t size() const { return size_; }

 private:
  static constexpr size_t kFirst = 16, kMost = 1024;
  std::vector<std::vector<T>> chunks_;
  size_t size_ = 0;
};

}  // namespace redfuser::ir
